"""The scheduled fabric: plans over every choice of how collectives are lowered."""
