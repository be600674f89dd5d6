"""Output layers: logits of words from features."""
