"""Puts other weights into a model for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.averaging.weight_sum import Weights, to_numpy


@contextlib.contextmanager
def exchanged(model: keras.Model, weights: Weights) -> Iterator[None]:
    """Puts weights into a model, and in the end its own back."""
    variables = model.trainable_variables
    raw = to_numpy([variable.value for variable in variables])
    try:
        assign(variables, weights)
        yield
    finally:
        assign(variables, raw)


def assign(variables: Sequence[Any], weights: Weights) -> None:
    """Assigns weights of any floating dtype to variables."""
    for variable, weight in zip(variables, weights, strict=True):
        variable.assign(tf.cast(weight, variable.dtype))
