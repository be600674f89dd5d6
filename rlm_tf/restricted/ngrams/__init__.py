"""Models of the next word given the last few, and their files."""
