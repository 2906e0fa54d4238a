"""What goes to the model, and what comes back."""
