"""Chat with a thread, line by line."""
