"""The parts of the page A recorded run."""
