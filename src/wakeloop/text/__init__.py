"""Text: characters, marks, secrets, HTML, drawings."""
