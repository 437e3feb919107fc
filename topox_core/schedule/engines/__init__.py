"""Exact engines behind one protocol, and the child process that runs them."""
