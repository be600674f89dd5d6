"""Norms, clipping and reduction of lists of gradients, dense or sparse."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from rlm_tf.replicas import all_reduce, num_replicas
from rlm_tf.typing import Gradient


def deduplicate(gradient: Gradient) -> Gradient:
    """Returns slices with every row once, so that their norm is the gradient's norm."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    indices, positions = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(
        gradient.values, positions, tf.shape(indices)[0]
    )
    return tf.IndexedSlices(values, indices, gradient.dense_shape)


def deduplicate_all(gradients: Sequence[Gradient]) -> list[Gradient]:
    """Returns gradients whose slices have every row once."""
    return [deduplicate(gradient) for gradient in gradients]


def global_norm(gradients: Sequence[Gradient]) -> tf.Tensor:
    """Returns the Euclidean norm of all gradients together, in float32 or wider.

    Slices must hold every row once (see `deduplicate`).
    """
    squares = []
    for gradient in gradients:
        if gradient is None:
            continue
        values = gradient.values if _is_sparse(gradient) else gradient
        values = values if values.dtype == tf.float64 else tf.cast(values, tf.float32)
        squares.append(tf.reduce_sum(tf.square(values)))
    return tf.sqrt(ordered_sum(squares)) if squares else tf.constant(0.0)


def ordered_sum(scalars: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns the sum of scalars, always to the same bits.

    `tf.add_n`, which chains of additions are compiled to as well, begins with whichever
    term it may overwrite. Where terms are read elsewhere, too, that depends on what has
    been computed by then, so that its last bits change from run to run.
    """
    return tf.reduce_sum(tf.stack(scalars))


def scale(gradients: Sequence[Gradient], factor: float | tf.Tensor) -> list[Gradient]:
    """Multiplies every gradient by a scalar."""
    if isinstance(factor, float) and factor == 1.0:
        return list(gradients)
    scaled: list[Gradient] = []
    for gradient in gradients:
        if gradient is None:
            scaled.append(None)
        elif _is_sparse(gradient):
            values = gradient.values * tf.cast(factor, gradient.values.dtype)
            scaled.append(
                tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
            )
        else:
            scaled.append(gradient * tf.cast(factor, gradient.dtype))
    return scaled


def clip_factor(norm: tf.Tensor, clip_norm: float | tf.Tensor) -> tf.Tensor:
    """Returns `min(1, clip_norm / norm)`; not-a-number where `norm` is not finite.

    A `clip_norm` of infinity clips nothing.
    """
    factor = tf.minimum(tf.ones_like(norm), tf.cast(clip_norm, norm.dtype) / norm)
    return tf.where(tf.math.is_finite(norm), factor, norm - norm)


def clip(gradients: Sequence[Gradient], clip_norm: float | tf.Tensor) -> list[Gradient]:
    """Scales gradients down to a global norm; slices must hold every row once."""
    return scale(gradients, clip_factor(global_norm(gradients), clip_norm))


def add(left: Sequence[Gradient], right: Sequence[Gradient]) -> list[Gradient]:
    """Adds two lists of gradients entry by entry; None stands for zero."""
    total: list[Gradient] = []
    for a, b in zip(left, right, strict=True):
        if a is None or b is None:
            total.append(b if a is None else a)
        elif _is_sparse(a) and _is_sparse(b):
            total.append(
                deduplicate(
                    tf.IndexedSlices(
                        tf.concat([a.values, b.values], axis=0),
                        tf.concat([a.indices, b.indices], axis=0),
                        a.dense_shape,
                    )
                )
            )
        else:
            total.append(tf.convert_to_tensor(a) + tf.convert_to_tensor(b))
    return total


def sum_over_replicas(gradients: Sequence[Gradient]) -> list[Gradient]:
    """Returns gradients summed over all replicas; the same list on one device."""
    present = [tf.convert_to_tensor(g) for g in gradients if g is not None]
    if num_replicas() == 1 or not present:
        return list(gradients)
    reduced = iter(all_reduce(present))
    return [None if g is None else next(reduced) for g in gradients]


def _is_sparse(gradient: Gradient) -> bool:
    return isinstance(gradient, tf.IndexedSlices)
