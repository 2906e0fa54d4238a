"""A thread at rest: opened, mended, read, edited."""
