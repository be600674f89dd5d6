"""Calls of decoders of latent-variable models, whatever they are made of."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.numerics import at_least_single


def log_likelihood(
    function: str, decoder: Any, z: tf.Tensor, x: Any, training: bool = False
) -> tf.Tensor:
    """Returns `ln p(x|z)` `[K, B]`, nats, single precision or wider.

    Args:
        function: Name of the caller; messages start with it.
        decoder: A layer or model called on latents and x; a functional model of two
            inputs, on a list of both.
        z: `[K, B, ...]`.
        x: A batch.
        training: Whether dropout acts.

    Raises:
        ValueError: If the decoder returns another shape.
    """
    arguments = ([z, x],) if _takes_a_list(decoder) else (z, x)
    found = at_least_single(decoder(*arguments, training=training))
    if found.shape.rank is not None:
        expected = z.shape[:2]
        if found.shape.rank != 2 or not found.shape.is_compatible_with(expected):
            raise ValueError(
                f"{function}: `decoder` must return ln p(x|z) of K samples of B "
                f"examples, [K, B] = {expected.as_list()}, found shape "
                f"{found.shape.as_list()}."
            )
    return found


def _takes_a_list(decoder: Any) -> bool:
    inputs = getattr(decoder, "inputs", None)
    return isinstance(decoder, keras.Model) and len(inputs or ()) > 1
