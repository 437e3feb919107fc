"""The view Kept runs: what is kept of runs, found again, opened, and set side by side."""
