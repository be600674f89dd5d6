"""Command: tuning of `mogrifier_lm`."""
