"""Compiled loops of the decomposition of a demand matrix."""
