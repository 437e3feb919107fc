"""What every page is made of: the frame, style, charts, downloads."""
