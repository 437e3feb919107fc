"""Numbers, units and sentences, written one way everywhere."""
