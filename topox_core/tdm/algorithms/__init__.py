"""Ways to group jobs and to choose rings."""
