"""Commands that compute many points, and on what the run library keeps."""
