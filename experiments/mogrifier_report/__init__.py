"""Command: tables and figures of `mogrifier_lm`."""
