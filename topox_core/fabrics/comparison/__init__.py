"""Fabrics side by side: which wins and why, and what is left of each after a failure."""
