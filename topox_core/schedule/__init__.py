"""TOPO-X: the reduced problem, bounds, schedule generation, exact engines, switch assignment."""
