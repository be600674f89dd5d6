"""Which recipe wins where text is scarce, beside the strongest simple peers."""
