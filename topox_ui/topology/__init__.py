"""The parts of the view Fixed circuits."""
