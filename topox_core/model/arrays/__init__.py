"""Rows, groups, heaps and orders of numbers that several rooms compute with."""
