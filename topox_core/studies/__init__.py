"""Studies: one question asked at many points, and what the answers say together."""
