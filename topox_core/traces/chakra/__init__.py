"""Chakra's and ASTRA-sim's files: nodes, reading and writing."""
