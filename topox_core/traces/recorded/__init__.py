"""The profiler's recordings: events, steps, calls of all ranks matched, waits and idle windows."""
