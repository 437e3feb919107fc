"""Lower bounds on a round."""
