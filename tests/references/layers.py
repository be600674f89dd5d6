"""Weights for layers under test."""

from __future__ import annotations

import zlib

import keras
import numpy as np


def set_random_weights(layer: keras.layers.Layer, scale: float = 0.5) -> None:
    """Gives every weight but the states of seeds values far from the first ones.

    They depend on the order of the weights and their shapes alone.
    """
    for number, weight in enumerate(layer.weights):
        if "seed" not in weight.path:
            rng = np.random.default_rng(
                [number, zlib.crc32(str(weight.shape).encode())]
            )
            weight.assign(rng.normal(size=weight.shape) * scale)
