"""Who changes circuits while a job runs: on demand, beforehand, phase by phase, at intervals, by region, inside a collective."""
