"""What the conformance suite must know of a class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

VOCABULARY = 6
TOKENS = np.array([[1, 2, 3, 1], [0, 5, 4, 2]], np.int32)


class Row(NamedTuple):
    """How to make an object with non-default arguments, and how to use it."""

    name: str
    make: Callable[[], Any]
    use: Callable[[Any], tf.Tensor]
    # Of models: what they are called on, and a batch of two examples to train on. Their
    # weights differ, so that a mean of replicas' means is not the mean of all.
    example: Any = TOKENS
    batch: Any = (
        (TOKENS, np.ones(2, np.int32)),
        np.roll(TOKENS, -1, axis=1),
        np.array([[1, 1, 1, 1], [1, 0.5, 0, 0]], np.float32),
    )
    # Of models: makes one tensor of what they give.
    read: Callable[[Any], tf.Tensor] = lambda given: given
