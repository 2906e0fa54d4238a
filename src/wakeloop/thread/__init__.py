"""A thread between runs: inputs, repair, status, edits."""
