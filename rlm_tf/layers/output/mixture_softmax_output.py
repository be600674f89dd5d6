"""The output layer of a language model: a mixture of softmaxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_shapes
from rlm_tf.layers.basic.replica_dropout import ReplicaDropout
from rlm_tf.layers.output.softmax_output import SoftmaxOutput
from rlm_tf.numerics import at_least_single
from rlm_tf.objectives.cross_entropy_with_imm import (
    JointLosses,
    cross_entropy_with_imms,
)
from rlm_tf.objectives.in_batch import Groups
from rlm_tf.objectives.recomputed_cross_entropy import recomputed_cross_entropy
from rlm_tf.objectives.soft_targets import (
    Distributions,
    SoftTargetLoss,
    cross_entropy_with_soft_targets,
)


@keras.saving.register_keras_serializable("rlm_tf")
class MixtureSoftmaxOutput(SoftmaxOutput):
    """Mixture of softmaxes, MoS (Yang et al. 2017, arXiv 1711.03953).

        p(v) = sum_k pi_k softmax(g_k K^T + b)_v

    Its features hold, side by side, the K vectors g_k, E numbers each, and the K logits
    of pi; `MixtureFeatures` makes them. Calling it gives log-probabilities; otherwise
    it is used as `SoftmaxOutput`.

    Args:
        vocabulary_size: V.
        components: K.
        recompute_logits: Whether losses keep the logits of one softmax in memory
            instead of those of all K, and compute them again for the gradient; see
            `recomputed_cross_entropy`.
        **kwargs: Of `SoftmaxOutput`.

    Raises:
        ValueError: If `components` is below 2.
    """

    def __init__(
        self,
        vocabulary_size: int,
        components: int,
        *,
        recompute_logits: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocabulary_size, **kwargs)
        check_integer("MixtureSoftmaxOutput", "components", components, 2)
        self.components = components
        self.recompute_logits = recompute_logits

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        width = int(input_shape[-1] or 0) - self.components
        if width <= 0 or width % self.components:
            raise ValueError(
                "MixtureSoftmaxOutput: the features must hold K vectors of equal width "
                f"and K logits, K = {self.components}; found {input_shape[-1]} numbers."
            )
        super().build((*input_shape[:-1], width // self.components))

    def row_losses(
        self, rows: tf.Tensor, kernel: tf.Tensor, targets: tf.Tensor
    ) -> tf.Tensor:
        parts, log_weights = self._split(rows)
        if self.recompute_logits:
            bias = tf.convert_to_tensor(self.bias) if self.use_bias else None
            parts = tf.reshape(parts, [-1, self.components, parts.shape[-1]])
            parts = tf.transpose(parts, [1, 0, 2])
            losses = recomputed_cross_entropy(parts, kernel, bias, targets)
            losses = tf.transpose(losses)
        else:
            repeated = tf.repeat(targets, self.components)
            losses = super().row_losses(parts, kernel, repeated)
            losses = tf.reshape(losses, [-1, self.components])
        return -tf.reduce_logsumexp(tf.cast(log_weights, losses.dtype) - losses, axis=1)

    def row_logits(
        self, rows: tf.Tensor, kernel: tf.Tensor, temperature: float | tf.Tensor
    ) -> tf.Tensor:
        parts, log_weights = self._split(rows)
        logits = at_least_single(super().row_logits(parts, kernel, temperature))
        log_probs = tf.nn.log_softmax(logits)
        log_probs = tf.reshape(log_probs, [-1, self.components, self.vocabulary_size])
        log_weights = tf.cast(log_weights, log_probs.dtype)[..., tf.newaxis]
        return tf.reduce_logsumexp(log_weights + log_probs, axis=1)

    def row_log_probs(
        self, rows: tf.Tensor, kernel: tf.Tensor, targets: tf.Tensor
    ) -> tf.Tensor:
        parts, log_weights = self._split(rows)
        repeated = tf.repeat(targets, self.components)
        log_probs = super().row_log_probs(parts, kernel, repeated)
        log_probs = tf.reshape(log_probs, [-1, self.components])
        return tf.reduce_logsumexp(
            tf.cast(log_weights, log_probs.dtype) + log_probs, axis=1
        )

    def joint(
        self,
        features: tf.Tensor,
        targets: tf.Tensor,
        several: Sequence[Groups],
        tied_kernel: tf.Tensor | None = None,
    ) -> JointLosses:
        check_shapes(
            type(self).__name__,
            features=(features[..., 0], "..."),
            targets=(targets, "..."),
        )
        log_probs = self(features, tied_kernel=tied_kernel)
        return cross_entropy_with_imms(log_probs, targets, several)

    def row_soft_losses(
        self,
        rows: tf.Tensor,
        kernel: tf.Tensor,
        targets: tf.Tensor,
        probs: Distributions,
    ) -> SoftTargetLoss:
        log_probs = self.row_logits(rows, kernel, 1.0)
        return cross_entropy_with_soft_targets(log_probs, targets, probs)

    def _split(self, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the vectors `[N K, E]` and the log-weights `[N, K]`."""
        vectors, logits = tf.split(
            rows, [rows.shape[-1] - self.components, self.components], axis=-1
        )
        width = vectors.shape[-1] // self.components
        log_weights = tf.nn.log_softmax(at_least_single(logits))
        return tf.reshape(vectors, [-1, width]), log_weights

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "components": self.components,
            "recompute_logits": self.recompute_logits,
        }


@keras.saving.register_keras_serializable("rlm_tf")
class MixtureFeatures(keras.layers.Layer):
    """Makes the features of a `MixtureSoftmaxOutput` from the last layer's outputs.

        g_k = tanh(h W_k + a_k);    logits of pi = h W_pi

    Args:
        components: K.
        width: E, of each vector.
        kernel_initializer: For `[D, K E]` and `[D, K]`.
        rate: Dropout on the vectors in training.
        seed: Of dropout.
        batch_axis: See `ReplicaDropout`.
        noise_shape: Of dropout, see `ReplicaDropout`.
        **kwargs: Of `keras.layers.Layer`.
    """

    def __init__(
        self,
        components: int,
        width: int,
        *,
        kernel_initializer: Any = "glorot_uniform",
        rate: float = 0.0,
        seed: int | None = None,
        batch_axis: int = 0,
        noise_shape: Sequence[int | None] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.components = components
        self.width = width
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.rate = rate
        self.seed = seed
        self.batch_axis = batch_axis
        self.noise_shape = noise_shape
        self.dropout = ReplicaDropout(
            rate, noise_shape, seed, batch_axis=batch_axis, dtype=self.dtype_policy
        )

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.kernel = self.add_weight(
            name="kernel",
            shape=(input_shape[-1], self.components * self.width),
            initializer=self.kernel_initializer,
        )
        self.bias = self.add_weight(
            name="bias", shape=(self.components * self.width,), initializer="zeros"
        )
        self.mixture_kernel = self.add_weight(
            name="mixture_kernel",
            shape=(input_shape[-1], self.components),
            initializer=self.kernel_initializer,
        )
        self.built = True

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Maps `[..., D]` to `[..., K E + K]`."""
        vectors = tf.tanh(keras.ops.matmul(inputs, self.kernel) + self.bias)
        vectors = self.dropout(vectors, training=training)
        logits = keras.ops.matmul(inputs, self.mixture_kernel)
        return tf.concat([vectors, logits], axis=-1)

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "components": self.components,
            "width": self.width,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "rate": self.rate,
            "seed": self.seed,
            "batch_axis": self.batch_axis,
            "noise_shape": self.noise_shape,
        }
