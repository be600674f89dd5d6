"""Distillation of language models where text is scarce."""
