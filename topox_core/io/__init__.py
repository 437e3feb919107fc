"""Files in and out: limits, readers that name file, item and field of a mistake, exports."""
