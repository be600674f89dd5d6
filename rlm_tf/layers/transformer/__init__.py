"""Blocks of transformers, causal or not."""
