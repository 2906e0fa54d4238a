"""Configuration from files and the environment."""

TOOLS = ("files", "shell")
"""The built-in tools of the command line, as files and options name them."""
