"""What several pages show of one setting: its job, its schedule, the contest of fabrics on it; one result everywhere."""
