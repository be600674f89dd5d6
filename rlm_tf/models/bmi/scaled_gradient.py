"""Values whose gradient is another, and scores of a discriminator by them."""

from __future__ import annotations

import tensorflow as tf

from rlm_tf.layers.basic.pair_discriminator import PairDiscriminator


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


def unweighted_scores(
    discriminator: PairDiscriminator,
    pair: tuple[tf.Tensor, tf.Tensor],
    weight: tf.Tensor,
) -> tf.Tensor:
    """Returns scores of training, `[B]`, whose loss is going to be weighted.

    The weight reaches the features and not the discriminator's own gradient.

    Args:
        discriminator: D.
        pair: Features of both pieces, `[B, F]` each.
        weight: A scalar; where it is 0, nothing is learnt.
    """
    x, y = (scaled_gradient(values, weight) for values in pair)
    scores = discriminator((x, y), training=True)
    return scaled_gradient(scores, tf.math.divide_no_nan(tf.ones_like(weight), weight))
