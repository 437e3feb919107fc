"""Photonic rails: a job's traffic on a rail, its idle windows, and circuits switched in them."""
