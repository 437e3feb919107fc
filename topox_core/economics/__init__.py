"""Parts, their prices and watts, and what a network of them costs and burns."""
