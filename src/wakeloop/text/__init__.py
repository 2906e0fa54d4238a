"""Text: its marks, its characters, its secrets."""
