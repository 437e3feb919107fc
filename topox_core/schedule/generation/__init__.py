"""List scheduling: priority rules and schedule generation."""
