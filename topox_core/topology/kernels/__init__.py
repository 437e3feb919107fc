"""Compiled loops of the layouts."""
