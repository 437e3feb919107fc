"""From settings to a plan: list scheduling, finer clocks, rebooking, local search."""
