"""Configuration of files and environment, level by level."""

TOOLS = ("files", "shell")
"""The tools that the command line may give an agent, by the names that files and options use."""
