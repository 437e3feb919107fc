"""The control plane of photonic rails, simulated: shims, their demand, and the controller of a rail exchange messages."""
