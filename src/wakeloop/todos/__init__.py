"""The list: knows no framework."""
