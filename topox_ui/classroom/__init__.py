"""A class on one machine: who may come in, what is open to them, where their answers are kept, what they may ask for at once."""
