"""Weights that are not decayed."""

from __future__ import annotations

from keras.optimizers import Optimizer

# As in BERT and ELECTRA: biases, those of positions too, and what normalisation
# multiplies and adds.
_NAMES = ("bias", "scale", "gamma", "beta")


def spare_biases(optimizer: Optimizer) -> Optimizer:
    """Returns an optimiser whose weight decay leaves biases and normalisation alone.

    Args:
        optimizer: Not built yet.
    """
    if optimizer.weight_decay:
        optimizer.exclude_from_weight_decay(var_names=[*_NAMES])
    return optimizer
