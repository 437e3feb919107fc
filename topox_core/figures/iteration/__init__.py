"""One training iteration: its lanes, circuits and traffic, how its schedule was found, what a recorded one did."""
