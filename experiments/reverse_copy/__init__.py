"""The reverse copy task."""
