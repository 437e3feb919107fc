"""Local search, and contests of several."""
