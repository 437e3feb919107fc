"""The simulated control plane of photonic rails: shims, their demand, a rail's controller."""
