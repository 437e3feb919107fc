"""Learning: seeded instances that anybody can draw again, their true answers, and the texts of the tour."""
