"""Compiled loops of the fluid simulator: order of readiness, max-min fair rates, events, load bounds."""
