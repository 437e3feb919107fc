"""Published tables and figures, our run of them, and the verdict."""
