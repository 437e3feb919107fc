"""The parts of the view Circuits."""
