"""Answers of a class: read, marked, graded, counted, ranked; the folder that holds them; what a student may see when."""
