"""Real tools: files, a folder, a shell."""
