"""Where job mixes come from: drawn at random, made from task graphs, read from the samples."""
