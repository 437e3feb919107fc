"""Lower bounds on the makespan, without a search tree."""
