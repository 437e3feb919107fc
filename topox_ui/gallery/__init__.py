"""The parts of the page Published results."""
