"""The parts of the page Jobs."""
