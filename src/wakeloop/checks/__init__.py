"""What people guess, and the right spelling of it."""
