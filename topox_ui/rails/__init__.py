"""The parts of the page Rails."""
