"""Generators of task graphs, so that nobody starts from nothing."""
