"""Random streams of rows, each with a seed of its own."""

from __future__ import annotations

import tensorflow as tf

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
