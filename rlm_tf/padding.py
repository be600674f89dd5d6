"""What stands behind the end of a sequence in a batch of several."""

PADDING = -1
