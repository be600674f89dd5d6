"""The induced cross-entropy of two labels, from logits, without logarithms of samples.

`rlm_tf.objectives.imm` computes the same for any number of labels in log space. With
two labels a sigmoid is exact for either, and one exponential a sample is enough.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rlm_tf.checks import check_floating, check_shapes
from rlm_tf.numerics import cast_like
from rlm_tf.objectives.imm import InducedExtra
from rlm_tf.typing import LossOutput, TensorLike

# exp(80) is finite in single precision, and so is its product with a sigmoid.
_LARGEST_LOGIT = 80.0


def induced_binary_cross_entropy(
    target_probs: TensorLike, sample_logits: TensorLike, weights: TensorLike
) -> LossOutput:
    """Returns the IMM loss of each position for two labels, Eqs. (2) and (3).

        Q_hat = sum_i w_i sigmoid(z_i),
        IMM = -P_hat log Q_hat - (1 - P_hat) log(1 - Q_hat)

    Value and gradient are those of `induced_cross_entropy` with `[log_sigmoid(-z),
    log_sigmoid(z)]`, for logits within +-80, where larger ones are cut off:

        d IMM / d z_i = -(P_hat / Q_hat - (1 - P_hat) / (1 - Q_hat)) w_i s_i (1 - s_i)

    Args:
        target_probs: `[...]`, the restricted model's probability of label 1; gets no
            gradient.
        sample_logits: `[K, ...]`, logits of label 1 given each extended context.
        weights: `[K, ...]`, those of the samples, summing to 1 over K; get no gradient.

    Returns:
        `loss` `[...]`, nats; `extra.induced_log_probs` `[..., 2]`, without gradient.

    Raises:
        ValueError: If shapes do not fit.
        TypeError: If logits are not floating point.
    """
    logits = tf.convert_to_tensor(sample_logits)
    check_floating("induced_binary_cross_entropy", sample_logits=logits)
    targets = tf.stop_gradient(cast_like(target_probs, logits))
    weights = tf.stop_gradient(cast_like(weights, logits))
    check_shapes(
        "induced_binary_cross_entropy",
        sample_logits=(logits, "..."),
        weights=(weights, "..."),
    )
    check_shapes(
        "induced_binary_cross_entropy",
        target_probs=(targets, "..."),
        sample_logits=(logits[0], "..."),
    )

    @tf.custom_gradient
    def induced(z: tf.Tensor) -> Any:
        positive, negative = _sigmoids(z)
        of_one = tf.reduce_sum(weights * positive, axis=0)
        of_zero = tf.reduce_sum(weights * negative, axis=0)
        loss = -tf.math.xlogy(targets, of_one) - tf.math.xlogy(1 - targets, of_zero)

        def gradient(upstream: tf.Tensor, *_: tf.Tensor) -> tf.Tensor:
            slope = tf.math.divide_no_nan(1 - targets, of_zero)
            slope -= tf.math.divide_no_nan(targets, of_one)
            positive, negative = _sigmoids(z)
            return upstream * slope * weights * positive * negative

        return (loss, of_zero, of_one), gradient

    loss, of_zero, of_one = induced(logits)
    log_probs = tf.math.log(tf.stack([of_zero, of_one], axis=-1))
    return LossOutput(loss, InducedExtra(tf.stop_gradient(log_probs)))


def _sigmoids(logits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns `sigmoid(z)` and `sigmoid(-z)`, each to its own relative precision."""
    logits = tf.clip_by_value(logits, -_LARGEST_LOGIT, _LARGEST_LOGIT)
    odds = tf.exp(-logits)
    positive = 1 / (1 + odds)
    return positive, odds * positive
