"""Sessions: what wakes them, and who hosts them."""
