"""The parts of the page Home."""
