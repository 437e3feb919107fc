"""Defects written down as small changes, and the script that asks whether the tests notice each of them."""
