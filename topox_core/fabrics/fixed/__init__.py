"""Circuits that stay fixed: laid before the job, searched for its task graph, and beside a plan."""
