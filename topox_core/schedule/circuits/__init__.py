"""From start times to circuits: switches and ports."""
