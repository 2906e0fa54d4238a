"""What a person sees of a run: one model of the screen, two views."""
