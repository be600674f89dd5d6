"""Soft nearest neighbours: which extended contexts occur near a short context."""

from __future__ import annotations

import math

import tensorflow as tf

from rlm_tf.checks import check_floating, check_shapes
from rlm_tf.numerics import cast_like
from rlm_tf.typing import TensorLike


def neighbor_log_weights(
    short_features: TensorLike,
    sample_short_features: TensorLike,
    inverse_bandwidth: TensorLike,
    sample_weights: TensorLike | None = None,
) -> tf.Tensor:
    """Returns the log of `w_i = v_i exp(-alpha |x_i - x|)`, the kernel of Eq. (2).

    `|.|` is the sum of absolute differences of the short features; v are
    `sample_weights`. Weights are not normalised: `induced_log_probs` does that.

    Args:
        short_features: `[..., N, L]`, where induced models are wanted.
        sample_short_features: `[..., K, L]`, of the examples whose extended contexts
            stand in for them.
        inverse_bandwidth: alpha, not negative: a number, or one for each leading index
            `[...]`. Zero weighs all alike.
        sample_weights: `[..., K]`, not negative; None: ones. Zero leaves one out; where
            all are zero, there is no neighbour, and all are taken.

    Returns:
        `[K, ..., N]`, ready for `induced_log_probs`.

    Raises:
        ValueError: If shapes do not fit.
        TypeError: If features are not floating point.
    """
    features = tf.convert_to_tensor(short_features)
    samples = tf.convert_to_tensor(sample_short_features)
    check_floating(
        "neighbor_log_weights", short_features=features, sample_short_features=samples
    )
    check_shapes(
        "neighbor_log_weights",
        short_features=(features, "... N L"),
        sample_short_features=(samples, "... K L"),
    )
    distances = tf.reduce_sum(
        tf.abs(features[..., tf.newaxis, :, :] - samples[..., :, tf.newaxis, :]),
        axis=-1,
    )
    alpha = cast_like(inverse_bandwidth, features)
    if alpha.shape.rank:
        alpha = alpha[..., tf.newaxis, tf.newaxis]
    log_weights = -alpha * distances
    if sample_weights is not None:
        weights = cast_like(sample_weights, features)[..., tf.newaxis]
        nobody = tf.reduce_all(weights == 0, axis=-2, keepdims=True)
        weights = tf.where(nobody, tf.ones_like(weights), weights)
        left_out = tf.constant(-math.inf, features.dtype)
        safe = tf.where(weights > 0, weights, 1)
        log_weights += tf.where(weights > 0, tf.math.log(safe), left_out)
    rank = log_weights.shape.rank
    return tf.transpose(log_weights, [rank - 2, *range(rank - 2), rank - 1])
