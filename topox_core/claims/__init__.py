"""What published networks claim against each other, tried on six jobs: fixed studies, one table, a verdict a claim."""
