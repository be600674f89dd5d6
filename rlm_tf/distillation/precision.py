"""Strategies compute in single precision at least, whatever networks compute in."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import keras
import tensorflow as tf


@contextlib.contextmanager
def single_precision() -> Iterator[None]:
    """Lets layers that are made inside compute in float32 where the rule is half.

    Sums of squares over a map and products of its channels are beyond float16.
    """
    policy = keras.config.dtype_policy()
    if tf.as_dtype(policy.compute_dtype).size > 2:
        yield
        return
    keras.config.set_dtype_policy("float32")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(policy)
