"""Who is right: the claims of published networks against each other, on six jobs."""
