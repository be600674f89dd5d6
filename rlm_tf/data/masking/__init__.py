"""Which tokens of a text are hidden, and by what."""
