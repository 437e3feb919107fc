"""The run library: what was computed, kept in one file that outlives the program."""
