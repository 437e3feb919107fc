"""One training iteration of a transformer: what a job is, how long its pieces take, and the graph that it makes."""
