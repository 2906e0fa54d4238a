"""The seven nodes, one file each."""
