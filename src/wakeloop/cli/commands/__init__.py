"""The command `wakeloop`: its options, its sentences."""
