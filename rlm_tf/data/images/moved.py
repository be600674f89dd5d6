"""Images moved, turned and distorted, each by numbers of its own."""

from __future__ import annotations

import tensorflow as tf


def moved(
    images: tf.Tensor,
    *,
    down: tf.Tensor | float = 0.0,
    right: tf.Tensor | float = 0.0,
    flip: tf.Tensor | None = None,
    angle: tf.Tensor | float = 0.0,
    shear_x: tf.Tensor | float = 0.0,
    shear_y: tf.Tensor | float = 0.0,
    exact: bool = False,
) -> tf.Tensor:
    """Returns images moved by pixels, mirrored, turned and sheared about their middle.

    What comes in from outside is 0.

    Args:
        images: float32 `[B, H, W, C]`.
        down: `[B]`, pixels.
        right: `[B]`, pixels.
        flip: Bool `[B]`, mirrored left to right before all else; None: none is.
        angle: `[B]`, radians, counterclockwise.
        shear_x: `[B]`, pixels to the right for each pixel down.
        shear_y: `[B]`, pixels down for each pixel to the right; of an image one of the
            two.
        exact: Whether the nearest pixel is taken, else four are interpolated.
    """
    number = tf.shape(images)[0]
    down, right, angle, shear_x, shear_y = (
        tf.broadcast_to(tf.cast(value, tf.float32), [number])
        for value in (down, right, angle, shear_x, shear_y)
    )
    mirror = tf.ones([number]) if flip is None else tf.where(flip, -1.0, 1.0)
    height, width = (
        tf.cast(size, tf.float32) for size in tf.unstack(tf.shape(images)[1:3])
    )
    middle_x, middle_y = (width - 1) / 2, (height - 1) / 2
    cos, sin = tf.cos(angle), tf.sin(angle)
    # Where a pixel of the result comes from: linear in its place about the middle.
    a, b = cos + shear_y * sin, -(sin + shear_x * cos)
    c, d = sin - shear_y * cos, cos - shear_x * sin
    to_x = middle_x - a * (middle_x + right) - b * (middle_y + down)
    to_y = middle_y - c * (middle_x + right) - d * (middle_y + down)
    a, b = mirror * a, mirror * b
    to_x = tf.where(mirror < 0, width - 1 - to_x, to_x)
    zeros = tf.zeros([number])
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=images,
        transforms=tf.stack([a, b, to_x, c, d, to_y, zeros, zeros], axis=1),
        output_shape=tf.shape(images)[1:3],
        fill_value=0.0,
        interpolation="NEAREST" if exact else "BILINEAR",
        fill_mode="CONSTANT",
    )
