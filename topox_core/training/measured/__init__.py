"""Measurements of real runs, and how far predictions are off."""
