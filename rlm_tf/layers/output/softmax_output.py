"""The output layer of a language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_logits_size, check_shapes
from rlm_tf.numerics import cast_like, rounded_product
from rlm_tf.objectives.cross_entropy import linear_cross_entropy
from rlm_tf.objectives.cross_entropy_with_imm import (
    JointLosses,
    linear_cross_entropy_with_imms,
)
from rlm_tf.objectives.in_batch import Groups
from rlm_tf.objectives.linear_log_probs import linear_log_probs
from rlm_tf.objectives.soft_targets import (
    Distributions,
    SoftTargetLoss,
    linear_cross_entropy_with_soft_targets,
)


@keras.saving.register_keras_serializable("rlm_tf")
class SoftmaxOutput(keras.layers.Layer):
    """Maps features to the logits of a vocabulary, or directly to the loss of targets.

    Its kernel is `[V, D]`, one row per word like an embedding. Calling the layer gives
    logits; with targets it gives
    their loss, for which logits are not kept.

    Args:
        vocabulary_size: V.
        use_bias: Whether the logits get a bias.
        own_kernel: Whether the layer has a kernel; False for tied embeddings, then
            every call is given the embedding matrix.
        kernel_initializer: For the kernel.
        bias_initializer: For the bias `[V]`.
        **kwargs: Of `keras.layers.Layer`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        *,
        use_bias: bool = True,
        own_kernel: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.use_bias = use_bias
        self.own_kernel = own_kernel
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        if self.own_kernel:
            self.kernel = self.add_weight(
                name="kernel",
                shape=(self.vocabulary_size, input_shape[-1]),
                initializer=self.kernel_initializer,
            )
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias",
                shape=(self.vocabulary_size,),
                initializer=self.bias_initializer,
            )
        self.built = True

    def call(
        self,
        features: tf.Tensor,
        targets: tf.Tensor | None = None,
        tied_kernel: tf.Tensor | None = None,
        temperature: float | tf.Tensor = 1.0,
    ) -> tf.Tensor:
        """Returns logits, or the loss of `targets` when they are given.

        Args:
            features: `[..., D]`.
            targets: Int `[...]` or None.
            tied_kernel: `[V, D]`, needed exactly when `own_kernel` is False.
            temperature: What logits are divided by; losses have none.

        Raises:
            ValueError: If the axes of `targets` are not the leading ones of `features`,
                or there are more logits than one array may hold.

        Returns:
            Logits `[..., V]` in the compute dtype, or the negative log-likelihood
            `[...]` of the targets in nats, float32 or wider.
        """
        kernel = tf.convert_to_tensor(self.kernel) if self.own_kernel else tied_kernel
        shape = tf.shape(features)[:-1]
        rows = tf.reshape(features, [-1, features.shape[-1]])
        if targets is not None:
            check_shapes(
                type(self).__name__,
                features=(features[..., 0], "..."),
                targets=(targets, "..."),
            )
            loss = self.row_losses(rows, kernel, tf.reshape(targets, [-1]))
            loss = tf.reshape(loss, shape)
            loss.set_shape(features.shape[:-1])
            return loss
        logits = self.row_logits(rows, kernel, temperature)
        logits = tf.reshape(logits, tf.concat([shape, [self.vocabulary_size]], axis=0))
        logits.set_shape([*features.shape[:-1], self.vocabulary_size])
        return logits

    def row_losses(
        self, rows: tf.Tensor, kernel: tf.Tensor, targets: tf.Tensor
    ) -> tf.Tensor:
        """Returns the loss `[N]` of targets `[N]`, given features `[N, D]`."""
        bias = tf.convert_to_tensor(self.bias) if self.use_bias else None
        return linear_cross_entropy(rows, kernel, bias, targets).loss

    def row_logits(
        self, rows: tf.Tensor, kernel: tf.Tensor, temperature: float | tf.Tensor
    ) -> tf.Tensor:
        """Returns logits `[N, V]` of features `[N, D]`."""
        positions = rows.shape[0] or tf.shape(rows)[0]
        fits = check_logits_size(type(self).__name__, positions, self.vocabulary_size)
        with tf.control_dependencies(fits):
            logits = rounded_product(rows, kernel)
        if self.use_bias:
            logits = tf.nn.bias_add(logits, tf.convert_to_tensor(self.bias))
        if isinstance(temperature, float) and temperature == 1.0:
            return logits
        return logits / cast_like(temperature, logits)

    def log_probs_at(
        self,
        features: tf.Tensor,
        targets: tf.Tensor,
        tied_kernel: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Returns log-probabilities of targets in memory that does not grow with V.

        For models that are done with training: there is no gradient.

        Args:
            features: `[..., D]`, in the compute dtype.
            targets: Int `[...]`.
            tied_kernel: `[V, D]`, needed exactly when `own_kernel` is False.

        Returns:
            `[...]`, nats, float32 or wider.

        Raises:
            ValueError: If the axes of `targets` are not the leading ones of `features`.
        """
        rows, kernel, flat = self._flat(features, targets, tied_kernel)
        return _as_axes(self.row_log_probs(rows, kernel, flat), features)

    def row_log_probs(
        self, rows: tf.Tensor, kernel: tf.Tensor, targets: tf.Tensor
    ) -> tf.Tensor:
        """Returns the log-probability `[N]` of targets `[N]`, as `log_probs_at`."""
        bias = tf.convert_to_tensor(self.bias) if self.use_bias else None
        return linear_log_probs(rows, kernel, bias, targets)

    def joint(
        self,
        features: tf.Tensor,
        targets: tf.Tensor,
        several: Sequence[Groups],
        tied_kernel: tf.Tensor | None = None,
    ) -> JointLosses:
        """Returns the loss of targets and that of in-batch induced models together.

        Args:
            features: `[..., D]`, in the compute dtype.
            targets: Int `[...]`.
            several: Of each restricted model the groups of the flat positions.
            tied_kernel: `[V, D]`, needed exactly when `own_kernel` is False.

        Returns:
            `cross_entropy` `[...]` and, of each, `induced` `[G]` and, where groups have
            rows on their own, `alone` `[N]`, nats, float32 or wider.
        """
        rows, kernel, flat = self._flat(features, targets, tied_kernel)
        bias = tf.convert_to_tensor(self.bias) if self.use_bias else None
        found = linear_cross_entropy_with_imms(rows, kernel, bias, flat, several)
        return found._replace(cross_entropy=_as_axes(found.cross_entropy, features))

    def joint_soft(
        self,
        features: tf.Tensor,
        targets: tf.Tensor,
        probs: Distributions,
        tied_kernel: tf.Tensor | None = None,
    ) -> SoftTargetLoss:
        """Returns the loss of targets and that of whole distributions together.

        Args:
            features: `[..., D]`, in the compute dtype.
            targets: Int `[...]`.
            probs: P of the flat positions, `[N, V]` or sparse; no gradient.
            tied_kernel: `[V, D]`, needed exactly when `own_kernel` is False.

        Returns:
            `cross_entropy` `[...]` and `soft` `[N]`, nats, float32 or wider.
        """
        rows, kernel, flat = self._flat(features, targets, tied_kernel)
        loss, soft = self.row_soft_losses(rows, kernel, flat, probs)
        return SoftTargetLoss(_as_axes(loss, features), soft)

    def row_soft_losses(
        self,
        rows: tf.Tensor,
        kernel: tf.Tensor,
        targets: tf.Tensor,
        probs: Distributions,
    ) -> SoftTargetLoss:
        """Returns both losses `[N]`, given features `[N, D]`."""
        bias = tf.convert_to_tensor(self.bias) if self.use_bias else None
        return linear_cross_entropy_with_soft_targets(
            rows, kernel, bias, targets, probs
        )

    def _flat(
        self, features: tf.Tensor, targets: tf.Tensor, tied_kernel: tf.Tensor | None
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns features `[N, D]`, the kernel in their dtype, and targets `[N]`."""
        check_shapes(
            type(self).__name__,
            features=(features[..., 0], "..."),
            targets=(targets, "..."),
        )
        kernel = self.kernel if self.own_kernel else tied_kernel
        kernel = tf.cast(kernel, features.dtype)
        rows = tf.reshape(features, [-1, features.shape[-1]])
        return rows, kernel, tf.reshape(targets, [-1])

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "use_bias": self.use_bias,
            "own_kernel": self.own_kernel,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
        }


def _as_axes(values: tf.Tensor, features: tf.Tensor) -> tf.Tensor:
    """Returns values `[N]` with the axes of features `[..., D]` but for the last."""
    values = tf.reshape(values, tf.shape(features)[:-1])
    values.set_shape(features.shape[:-1])
    return values
