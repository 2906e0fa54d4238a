"""Configuration from files and the environment, level by level."""
