"""Local search, and successive halving of several."""
