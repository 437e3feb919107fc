"""Commands on circuits: a task graph scheduled and compared, circuits that stay, one matrix, jobs that take turns."""
