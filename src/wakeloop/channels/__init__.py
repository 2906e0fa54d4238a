"""How writes become values."""
