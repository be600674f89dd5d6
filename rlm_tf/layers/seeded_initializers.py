"""Initialisers whose seeds all come from one seed."""

from __future__ import annotations

import zlib

import keras
import numpy as np


def reseeded(
    initializer: keras.initializers.Initializer, seed: int
) -> keras.initializers.Initializer:
    """Returns a copy of an initialiser with another seed, if it has one."""
    config = initializer.get_config()
    if "seed" in config:
        config["seed"] = seed
    return type(initializer).from_config(config)


def random_of(owner: object, seed: int) -> np.random.Generator:
    """Returns a generator for the seeds of a layer's parts, other ones a class.

    Layers of two classes that get the same seed begin with different weights.
    """
    name = type(owner).__name__.encode()
    return np.random.default_rng([zlib.crc32(name), seed])


class SeededInitializers:
    """Hands out copies of one initialiser, each with a seed of its own.

    A Keras initialiser with a fixed seed gives every weight of one shape the same
    values, and one without a seed gives other values in every process.

    Args:
        initializer: What to copy; one that takes no seed is copied as it is.
        seed: The seed from which all others are drawn.
    """

    def __init__(self, initializer: keras.initializers.Initializer, seed: int) -> None:
        self._initializer = initializer
        self._random = np.random.default_rng(seed)

    def next(self) -> keras.initializers.Initializer:
        """Returns the next copy."""
        return reseeded(self._initializer, self.seeds(1)[0])

    def seeds(self, number: int) -> list[int]:
        """Returns the next integer seeds, for dropout and the like."""
        return [int(seed) for seed in self._random.integers(2**31, size=number)]
