"""What every page is made of: the frame, the panel of runs, style, charts, downloads."""
