"""What a person sees of a run: one screen, two views."""
