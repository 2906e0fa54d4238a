"""Arguments, inputs and configs, checked before anything runs."""
