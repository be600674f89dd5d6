"""Distributions of latents, and what encodes and decodes them."""
