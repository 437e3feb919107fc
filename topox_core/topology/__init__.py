"""Static circuit layouts: TopologyFinder, routing, failures and their repair."""
