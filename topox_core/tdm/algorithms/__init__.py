"""Ways to group jobs and to choose rings, and what no round is below."""
