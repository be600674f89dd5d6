"""Features of a teacher and a student, checked, and brought to one size."""

from __future__ import annotations

import math

import tensorflow as tf

from rlm_tf.checks import check_floating, check_shapes
from rlm_tf.numerics import at_least_single, cast_like
from rlm_tf.objectives.divergences import unit as unit
from rlm_tf.typing import LossOutput, TensorLike


def paired(
    name: str, teacher: TensorLike, student: TensorLike, pooled: bool = False
) -> tuple[tf.DType, tf.Tensor, tf.Tensor]:
    """Returns the student's dtype, and features of one shape.

    Args:
        name: Of the function.
        teacher: The teacher's.
        student: The student's.
        pooled: Whether maps may be of several sizes.
    """
    dtype, t, s = _of_one_batch(name, teacher, student)
    if pooled and t.shape.rank == 4 and s.shape.rank == 4:
        t, s = same_size(name, t, s)
    if t.shape.rank != s.shape.rank or not t.shape.is_compatible_with(s.shape):
        raise ValueError(
            f"{name}: teacher and student must be of one shape, found "
            f"{t.shape.as_list()} and {s.shape.as_list()}."
        )
    return dtype, t, s


def rows_of_one_batch(
    name: str, teacher: TensorLike, student: TensorLike
) -> tuple[tf.DType, tf.Tensor, tf.Tensor]:
    """Returns the student's dtype, and features as rows of any width."""
    dtype, t, s = _of_one_batch(name, teacher, student)
    return dtype, as_rows(t), as_rows(s)


def maps_of_one_size(
    name: str, teacher: TensorLike, student: TensorLike
) -> tuple[tf.DType, tf.Tensor, tf.Tensor]:
    """Returns the student's dtype, and maps of one size."""
    dtype, t, s = _of_one_batch(name, teacher, student)
    check_shapes(name, teacher=(t, "B H W C"), student=(s, "B h w c"))
    return dtype, *same_size(name, t, s)


def _of_one_batch(
    name: str, teacher: TensorLike, student: TensorLike
) -> tuple[tf.DType, tf.Tensor, tf.Tensor]:
    check_floating(name, teacher=teacher, student=student)
    dtype = tf.convert_to_tensor(student).dtype
    s = at_least_single(student)
    t = tf.stop_gradient(cast_like(teacher, s))
    for argument, found in (("teacher", t), ("student", s)):
        if found.shape.rank is not None and found.shape.rank < 2:
            raise ValueError(
                f"{name}: `{argument}` must be features [B, ...], found shape "
                f"{found.shape.as_list()}."
            )
    if not t.shape[:1].is_compatible_with(s.shape[:1]):
        raise ValueError(
            f"{name}: teacher and student must be of one batch, found "
            f"{t.shape[0]} and {s.shape[0]} examples."
        )
    return dtype, t, s


def same_size(name: str, t: tf.Tensor, s: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns maps of the smaller height and width, of which the larger is pooled."""
    sizes = [t.shape[1:3].as_list(), s.shape[1:3].as_list()]
    if any(None in size for size in sizes):
        raise ValueError(
            f"{name}: height and width of maps must be known, found {sizes[0]} and "
            f"{sizes[1]}."
        )
    smaller = [min(pair) for pair in zip(*sizes, strict=True)]
    return _pooled(t, smaller), _pooled(s, smaller)


def _pooled(maps: tf.Tensor, size: list[int]) -> tf.Tensor:
    """Returns means over blocks, as even as they can be, of which there are `size`."""
    for axis, number in zip((1, 2), size, strict=True):
        length = maps.shape[axis]
        if length == number:
            continue
        # Blocks overlap where the length is no multiple, as PyTorch's do.
        edges = [
            (i * length // number, -(-(i + 1) * length // number))
            for i in range(number)
        ]
        blocks = [
            tf.reduce_mean(tf.gather(maps, tf.range(*edge), axis=axis), axis=axis)
            for edge in edges
        ]
        maps = tf.stack(blocks, axis=axis)
    return maps


def as_rows(features: tf.Tensor) -> tf.Tensor:
    """Returns features `[B, ...]` as rows `[B, D]`."""
    width = math.prod(features.shape[1:]) if None not in features.shape[1:] else -1
    return tf.reshape(features, [tf.shape(features)[0], width])


def as_pixels(maps: tf.Tensor) -> tf.Tensor:
    """Returns maps as `[B, H W, C]`."""
    shape = tf.shape(maps)
    return tf.reshape(maps, [shape[0], shape[1] * shape[2], maps.shape[3]])


def loss_of(dtype: tf.DType, loss: tf.Tensor) -> LossOutput:
    """Returns a loss in a dtype, and no by-products."""
    return LossOutput(tf.cast(loss, dtype), None)
