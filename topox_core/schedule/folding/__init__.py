"""Equal replicas folded into one, solved, and unfolded."""
