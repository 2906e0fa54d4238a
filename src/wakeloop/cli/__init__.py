"""The command line: run, resume and look at threads."""
