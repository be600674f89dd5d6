"""What stands behind the end of a sequence in a batch of several."""

PADDING = -1
# For messages.
FILL_UP = (
    f"Encode the text with that vocabulary, and fill up rows with {PADDING} behind "
    "their end"
)
