"""Work that takes longer than a blink: stop criteria, child processes, cells."""
