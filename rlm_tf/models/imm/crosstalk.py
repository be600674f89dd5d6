"""The IMM gradient one sample at a time, appendix C.2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from rlm_tf.numerics import multiply_no_nan_log
from rlm_tf.objectives.imm import crosstalk_surrogate
from rlm_tf.typing import Gradient


class CrosstalkSamples:
    """Loss and gradient of the induced model of k samples, in the memory of one.

    The forward pass accumulates `S = sum_i Q_i` sample by sample; the backward pass
    runs each sample again with the constant weights `C_i = Q_i / S`. Peak memory does
    not grow with k; a step costs one more forward pass than the direct gradient.

    Args:
        log_probs: Maps a sample's number (int32 scalar) to its log-probabilities
            `[N, V]`; called while graphs of loops are traced, with equal results.
        target_probs: `[N, V]`.
        samples: int32 scalar, how many samples there are; 0 gives loss and gradient 0.
    """

    def __init__(
        self,
        log_probs: Callable[[tf.Tensor], tf.Tensor],
        target_probs: tf.Tensor,
        samples: tf.Tensor,
    ):
        self._log_probs = log_probs
        self._target_probs = target_probs
        self._samples = samples

    def loss_and_gradient(
        self, variables: Sequence[Any], scale: tf.Tensor
    ) -> tuple[tf.Tensor, list[Gradient]]:
        """Returns the loss `[N]` and the dense gradient of `sum(scale * loss)`.

        Call it outside of the tape of the step: under a persistent tape,
        `tf.while_loop` keeps what its gradient would need of every iteration, whether
        or not that gradient is ever asked for.
        """
        log_sum = self._log_sum()
        gradients = self._gradients(log_sum, variables, scale)
        count = tf.cast(tf.maximum(self._samples, 1), log_sum.dtype)
        log_induced = log_sum - tf.math.log(count)
        loss = -tf.reduce_sum(
            multiply_no_nan_log(self._target_probs, log_induced), axis=-1
        )
        return tf.where(self._samples > 0, loss, tf.zeros_like(loss)), gradients

    def _log_sum(self) -> tf.Tensor:
        """Returns `log S` `[N, V]`."""

        def accumulate(sample: tf.Tensor, log_sum: tf.Tensor) -> list[tf.Tensor]:
            return [sample + 1, _log_add_exp(log_sum, self._log_probs(sample))]

        targets = self._target_probs
        _, log_sum = tf.while_loop(
            lambda sample, _: sample < self._samples,
            accumulate,
            [tf.constant(0), tf.fill(tf.shape(targets), targets.dtype.min)],
            parallel_iterations=1,
        )
        return log_sum

    def _gradients(
        self, log_sum: tf.Tensor, variables: Sequence[Any], scale: tf.Tensor
    ) -> list[Gradient]:
        # A tape that finds a variable unconnected knows those of TensorFlow alone.
        values = [variable.value for variable in variables]

        def accumulate(sample: tf.Tensor, *totals: tf.Tensor) -> list[tf.Tensor]:
            with tf.GradientTape() as tape:
                log_q = self._log_probs(sample)
                weights = tf.exp(tf.stop_gradient(log_q) - log_sum)
                losses = crosstalk_surrogate(self._target_probs, log_q, weights)
                total = tf.reduce_sum(losses * tf.cast(scale, losses.dtype))
            own = tape.gradient(
                total, values, unconnected_gradients=tf.UnconnectedGradients.ZERO
            )
            return [
                sample + 1,
                *[
                    t + tf.convert_to_tensor(g)
                    for t, g in zip(totals, own, strict=True)
                ],
            ]

        zeros = [tf.zeros_like(tf.convert_to_tensor(v)) for v in variables]
        _, *totals = tf.while_loop(
            lambda sample, *_: sample < self._samples,
            accumulate,
            [tf.constant(0), *zeros],
            parallel_iterations=1,
        )
        return totals


def _log_add_exp(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    highest = tf.maximum(left, right)
    return highest + tf.math.log1p(tf.exp(-tf.abs(left - right)))
