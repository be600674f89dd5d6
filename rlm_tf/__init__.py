"""Train language models, and any Keras model, on scarce data with a second model."""

__version__ = "0.1.0"
