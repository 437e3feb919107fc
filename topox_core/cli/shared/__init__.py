"""What every command stands on: its frame, its options, its files, what it prints."""
