"""What brings a student's features to the shape of its teacher's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from rlm_tf.distillation.precision import single_precision

Shape = Sequence[int | None]


@single_precision()
def regressor(
    name: str, student: Shape, teacher: Shape, *, relu: bool
) -> keras.Sequential:
    """Returns a trained map of features, built; that of the thesis' comparison.

    Of maps a convolution: 3 x 3 with stride 2 to half the size, a transposed one of
    4 x 4 to twice the size, else one as large as leaves the teacher's size; batch
    normalisation, and ReLU. Of vectors, or sequences of them, a dense layer alone.

    Args:
        name: Of the strategy; messages begin with it.
        student: Shape of the student's features, `[B, H, W, C]` or `[B, ..., D]`.
        teacher: Shape of the teacher's.
        relu: Whether there is a ReLU behind the normalisation.

    Raises:
        ValueError: If no map of that kind leads from one shape to the other.
    """
    if len(student) != len(teacher) or teacher[-1] is None:
        raise ValueError(
            f"{name}: features of shape {list(student)} cannot be brought to those of "
            f"the teacher, {list(teacher)}."
        )
    layers: list[Any] = [keras.Input(student[1:])]
    if len(student) == 4:
        layers.append(_convolution(name, student, teacher))
        # As the code of the comparison has it.
        # Over all replicas, so that they take the step of one device.
        norm = keras.layers.BatchNormalization(
            epsilon=1e-5, synchronized=True, name="norm"
        )
        layers.append(norm)
        if relu:
            layers.append(keras.layers.ReLU(name="relu"))
    else:
        layers.append(keras.layers.Dense(teacher[-1], name="dense"))
    return keras.Sequential(layers, name="regressor")


def _convolution(name: str, student: Shape, teacher: Shape) -> keras.Layer:
    sizes = [*student[1:3], *teacher[1:3]]
    if None in sizes:
        raise ValueError(
            f"{name}: height and width of maps must be known, found "
            f"{list(student[1:3])} and {list(teacher[1:3])}."
        )
    high, wide, to_high, to_wide = (int(size or 0) for size in sizes)
    channels = int(teacher[-1] or 0)
    if (high, wide) == (2 * to_high, 2 * to_wide):
        return keras.layers.Conv2D(channels, 3, 2, "same", name="conv")
    if (2 * high, 2 * wide) == (to_high, to_wide):
        return keras.layers.Conv2DTranspose(channels, 4, 2, "same", name="conv")
    if high >= to_high and wide >= to_wide:
        kernel = (1 + high - to_high, 1 + wide - to_wide)
        return keras.layers.Conv2D(channels, kernel, name="conv")
    raise ValueError(
        f"{name}: maps of {high} x {wide} cannot be brought to {to_high} x {to_wide}: "
        "a student's are as large as its teacher's, larger, or half as large."
    )


@single_precision()
def projection(name: str, shape: Shape, width: int) -> keras.Sequential:
    """Returns a trained linear map of features to vectors, built.

    Args:
        name: Of the layer.
        shape: Of the features, `[B, ...]`.
        width: Of the vectors.
    """
    return keras.Sequential(
        [
            keras.Input(shape[1:]),
            keras.layers.Flatten(),
            keras.layers.Dense(width, name="dense"),
        ],
        name=name,
    )
