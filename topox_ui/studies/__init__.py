"""The page Studies: many what-ifs at once, built, run, watched and drawn."""
