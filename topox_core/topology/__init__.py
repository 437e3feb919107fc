"""Static circuit layouts: TopologyFinder's rings, matching and routing; failures and their repair."""
