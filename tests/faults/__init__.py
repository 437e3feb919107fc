"""Faults that a machine has now and then: what is kept, and that nothing hangs or ends in a traceback."""
