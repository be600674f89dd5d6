"""Induced model matching: wrappers and the contexts that induced models are over."""
