"""The search over split and placement together: moves, what a plan is worth, and its kernel."""
