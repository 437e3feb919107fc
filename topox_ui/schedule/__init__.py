"""The parts of the page Schedule."""
