"""The parts of the page Topology."""
