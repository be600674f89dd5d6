"""Draws from next-token distributions, each row with a random stream of its own."""

from __future__ import annotations

import tensorflow as tf

from rlm_tf.checks import check_shapes
from rlm_tf.typing import TensorLike


def row_seeds(seed: int | TensorLike, num_rows: int | tf.Tensor) -> tf.Tensor:
    """Returns one seed a row, int64 `[N, 2]`.

    With one `seed` for all, row i gets (seed, i): equal prompts get different texts,
    and what a row gets does not depend on how many rows follow. With a seed per row,
    row i gets (seed_i, 0), whatever its place in the batch.

    Args:
        seed: Integer, scalar or `[N]`.
        num_rows: N.

    Raises:
        ValueError: If `seed` is neither a scalar nor a vector.
    """
    seed = tf.cast(seed, tf.int64)
    if seed.shape.rank not in (0, 1):
        raise ValueError(
            f"row_seeds: `seed` must be a scalar or have axes [N], found {seed.shape}."
        )
    if seed.shape.rank == 0:
        rows = tf.range(tf.cast(num_rows, tf.int64))
        return tf.stack([tf.fill(tf.shape(rows), seed), rows], axis=-1)
    return tf.stack([seed, tf.zeros_like(seed)], axis=-1)


def uniform_draws(seeds: tf.Tensor, num_draws: int | tf.Tensor) -> tf.Tensor:
    """Returns numbers in [0, 1), float64 `[N, num_draws]`, row by row from its seed.

    Args:
        seeds: `[N, 2]`, see `row_seeds`.
        num_draws: Numbers a row.
    """
    # One row more than asked for: `map_fn` cannot stack nothing.
    padded = tf.pad(seeds, [[0, 1], [0, 0]])
    draws = tf.map_fn(
        lambda seed: tf.random.stateless_uniform(
            [num_draws], seed=seed, dtype=tf.float64
        ),
        padded,
        fn_output_signature=tf.TensorSpec([None], tf.float64),
    )
    return draws[:-1]


def draw_tokens(logits: TensorLike, uniforms: TensorLike) -> tf.Tensor:
    """Draws one token a row by inverting the cumulative distribution.

    One number a row is enough, and a row's token depends on nothing but its logits and
    its number. A token of logit minus infinity is never drawn.

    Args:
        logits: `[N, V]`.
        uniforms: float64 `[N]`, in [0, 1).

    Returns:
        int32 `[N]`.
    """
    logits, uniforms = tf.convert_to_tensor(logits), tf.cast(uniforms, tf.float64)
    check_shapes("draw_tokens", logits=(logits, "N V"), uniforms=(uniforms, "N"))
    weights = tf.exp(logits - tf.reduce_max(logits, axis=-1, keepdims=True))
    cumulative = tf.cumsum(tf.cast(weights, tf.float64), axis=-1)
    # Uniforms are multiples of 2^-52, so the target stays below the last entry, and
    # the first entry above it belongs to a token of positive weight.
    target = uniforms * cumulative[:, -1]
    found = tf.searchsorted(cumulative, target[:, tf.newaxis], side="right")
    return tf.squeeze(found, axis=-1)
