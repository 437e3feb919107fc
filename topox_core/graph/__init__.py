"""Task graphs: the user's graph, its files, and the lowering of collectives to transfers."""
