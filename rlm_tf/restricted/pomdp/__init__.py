"""Beliefs, and solutions of partially observed decision processes."""
