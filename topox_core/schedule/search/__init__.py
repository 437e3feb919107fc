"""Local search, successive halving, large neighbourhoods."""
