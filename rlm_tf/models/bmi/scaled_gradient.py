"""Values whose gradient is another."""

from __future__ import annotations

import tensorflow as tf


def scaled_gradient(values: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
    """Returns values as they are; their gradient is multiplied by a factor.

    Args:
        values: Any shape.
        factor: Scalar, without a gradient.
    """
    factor = tf.stop_gradient(tf.cast(factor, values.dtype))

    @tf.custom_gradient
    def identity(x: tf.Tensor) -> tuple[tf.Tensor, object]:
        return tf.identity(x), lambda upstream: factor * upstream

    return identity(values)
