"""One demand matrix over parallel optical switches: matchings, their times, who carries which."""
