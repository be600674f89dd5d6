"""Exports of encoders and of what is built on them."""
