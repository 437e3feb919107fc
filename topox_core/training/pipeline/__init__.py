"""A job as a program of steps per stage, and as a task graph."""
