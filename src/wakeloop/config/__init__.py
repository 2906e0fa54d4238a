"""Configuration of files and environment, level by level."""
