"""Latents as decoders read them: one vector for each sample of an example."""

from __future__ import annotations

import math

import tensorflow as tf


def flat_latents(function: str, latents: tf.Tensor, latent_size: int) -> tf.Tensor:
    """Returns latents `[K, B, ...]` as `[K, B, latent_size]`.

    Args:
        function: Name of the caller; messages start with it.
        latents: Of K samples of B examples.
        latent_size: How many entries the latents of an example must have.

    Raises:
        ValueError: If they have others.
    """
    shape = latents.shape
    if shape.rank is not None:
        if shape.rank < 3:
            raise ValueError(
                f"{function}: `latents` must have axes [K B ...], found shape "
                f"{shape.as_list()}."
            )
        event = shape.as_list()[2:]
        if None not in event and math.prod(event) != latent_size:
            raise ValueError(
                f"{function}: `latents` must have {latent_size} entries an example, "
                f"found {math.prod(event)} (shape {shape.as_list()})."
            )
    sizes = [shape[axis] or tf.shape(latents)[axis] for axis in (0, 1)]
    return tf.reshape(latents, [*sizes, latent_size])


def check_examples(function: str, latents: tf.Tensor, **x: tf.Tensor) -> None:
    """Raises ValueError if latents `[K, B, ...]` and x `[B, ...]` differ in B."""
    for name, values in x.items():
        if None in (latents.shape.rank, values.shape.rank) or latents.shape.rank < 3:
            continue
        own, other = latents.shape[1], values.shape[0]
        if None not in (own, other) and own != other:
            raise ValueError(
                f"{function}: `latents` are of {own} examples, `{name}` of {other}; "
                "they must be the same."
            )
