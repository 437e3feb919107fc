"""The parts of the page Strategy."""
