"""Jobs, rounds, links and their files."""
