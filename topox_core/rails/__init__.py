"""Photonic rails: what a hybrid-parallel job sends on a rail, its idle windows, and circuits switched inside the job."""
