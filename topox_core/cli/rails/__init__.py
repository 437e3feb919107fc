"""Commands on photonic rails."""
