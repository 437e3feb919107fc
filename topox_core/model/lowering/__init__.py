"""Collectives as transfers: algorithms, the choice between them and their steps."""
