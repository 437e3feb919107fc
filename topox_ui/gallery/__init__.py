"""The parts of the page Gallery."""
