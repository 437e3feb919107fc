"""From settings to a plan: list scheduling, finer clocks, rebooking, search and the engines beside the page."""
