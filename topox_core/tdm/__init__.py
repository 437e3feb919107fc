"""Several jobs on one optical fabric by time-division multiplexing: demand, rings, links, grouping, exact model."""
