"""Transfers that share links max-min fairly: the simulator, the networks on it, the ideal switch."""
