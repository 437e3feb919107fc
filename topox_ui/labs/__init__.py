"""The page Labs: eight labs and those of a lecturer, one screen at a time."""
