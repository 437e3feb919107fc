"""The parts of the page Cost."""
