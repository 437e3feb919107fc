"""Recorded runs of other tools: traces in, a task graph of one iteration out; graphs and schedules back as traces."""
