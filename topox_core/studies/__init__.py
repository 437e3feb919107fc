"""Studies: a subject, axes, a design and measures in; one kept run a point out."""
