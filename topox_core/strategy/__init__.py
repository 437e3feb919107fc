"""Parallelisation strategies: operators and their costs, task graphs from strategies, the search."""
