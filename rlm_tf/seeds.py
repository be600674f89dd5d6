"""One integer seed split into the seeds of a layer's or model's parts."""

from __future__ import annotations

import zlib

import keras
import numpy as np


class Seeds:
    """Hands out seeds, in the order in which they are asked for.

    A Keras initialiser with a fixed seed gives every weight of one shape the same
    values, and one without a seed gives other values in every process: hence a seed of
    its own for each part, all drawn from one.

    Args:
        seed: The seed from which all others are drawn.
        owner: Whose parts they are. Objects of two classes that get the same seed begin
            with different weights; None: the seed alone decides.
    """

    def __init__(self, seed: int, owner: object | None = None) -> None:
        name = type(owner).__name__.encode()
        self._random = np.random.default_rng(
            seed if owner is None else [zlib.crc32(name), seed]
        )

    def next(self) -> int:
        """Returns the next seed, in [0, 2^31)."""
        return int(self._random.integers(2**31))

    def take(self, number: int) -> list[int]:
        """Returns the next seeds."""
        return [self.next() for _ in range(number)]

    def generator(self) -> keras.random.SeedGenerator:
        """Returns a generator with the next seed, for draws that go on."""
        return keras.random.SeedGenerator(self.next())

    def initializer(
        self, initializer: keras.initializers.Initializer
    ) -> keras.initializers.Initializer:
        """Returns a copy of an initialiser with the next seed, if it takes one."""
        return reseeded(initializer, self.next())


def reseeded(
    initializer: keras.initializers.Initializer, seed: int
) -> keras.initializers.Initializer:
    """Returns a copy of an initialiser with another seed, if it has one."""
    config = initializer.get_config()
    if "seed" in config:
        config["seed"] = seed
    return type(initializer).from_config(config)


class SeededInitializers:
    """Hands out copies of one initialiser, each with a seed of its own.

    Args:
        initializer: What to copy; one that takes no seed is copied as it is.
        seed: The seed from which all others are drawn.
    """

    def __init__(self, initializer: keras.initializers.Initializer, seed: int) -> None:
        self._initializer = initializer
        self._seeds = Seeds(seed)

    def next(self) -> keras.initializers.Initializer:
        """Returns the next copy."""
        return self._seeds.initializer(self._initializer)

    def seeds(self, number: int) -> list[int]:
        """Returns the next integer seeds, for dropout and the like."""
        return self._seeds.take(number)
