"""The parts of the page Your trace."""
