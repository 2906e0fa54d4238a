"""Checks of arguments, inputs and configs before a run."""
