"""A conversation with one thread, line by line."""
