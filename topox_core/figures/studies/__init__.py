"""Many points at once: cells over two axes, lines with their band, points beside a front."""
