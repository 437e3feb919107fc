"""Photonic rails: what a delay costs, what is sent when, and the windows between."""
