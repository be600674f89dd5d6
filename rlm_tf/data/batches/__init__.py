"""Batches of text, noise in them, and where short contexts occur."""
