"""Claims against each other: the claims of published networks against each other, on six jobs."""
