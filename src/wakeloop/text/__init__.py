"""Text: its marks, characters, secrets; HTML and SVG of it."""
