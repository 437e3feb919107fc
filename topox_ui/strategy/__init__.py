"""The parts of the page Plans."""
