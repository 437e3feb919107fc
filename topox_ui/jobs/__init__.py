"""The parts of the page Sharing."""
