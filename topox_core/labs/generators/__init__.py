"""The nine generators of instances: draws, what a student is given, and true and mistaken values, each computed when asked for."""
