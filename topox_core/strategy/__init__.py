"""Parallelisation strategies: operators, their costs, task graphs, the search."""
