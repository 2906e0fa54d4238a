"""Channel types and reducers."""
