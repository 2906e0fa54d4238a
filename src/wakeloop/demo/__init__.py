"""The demo: an audit of the reader's own files, offline."""
