"""Which switch: switches on offer, the answer, break-even points, and what it depends on."""
