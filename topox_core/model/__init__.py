"""Shared objects: task graphs, clusters, transfers, executions and their measures."""
