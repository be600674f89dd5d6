"""Vector quantisation with codebooks that are moving averages."""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_shapes
from rlm_tf.replicas import all_reduce


class Quantized(NamedTuple):
    """What `VectorQuantizer` returns.

    Attributes:
        vectors: `[B, L, D]`, the nearest codes; their gradient goes to the inputs as if
            nothing had been done (straight-through).
        codes: int32 `[B, L]`.
        commitment: `[B]`, squared distance of inputs and codes, summed over L and D;
            only inputs get its gradient.
    """

    vectors: tf.Tensor
    codes: tf.Tensor
    commitment: tf.Tensor


@keras.saving.register_keras_serializable("rlm_tf")
class VectorQuantizer(keras.layers.Layer):
    """Replaces vectors by the nearest of C codes, each of L latents by one of its own.

    Codes are not trained by gradients: each is the mean of the inputs that were nearest
    to it, with weights that fall by `decay` a training step (van den Oord et al. 2017,
    appendix A.1). A code that nothing is near to stays where it is. Replicas move codes
    together.

    Args:
        num_latents: L.
        num_categories: C.
        size: D.
        decay: In [0, 1).
        seed: Of the first codes, normal with norms of about 1.
        **kwargs: Of `keras.layers.Layer`.

    Call arguments:
        inputs: `[B, L, D]`.
        training: Whether codes move.
        weights: `[B]`, what an input counts in the means, 0 or more; None: 1.
    """

    def __init__(
        self,
        num_latents: int,
        num_categories: int,
        size: int,
        *,
        decay: float = 0.99,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_integer("VectorQuantizer", "num_latents", num_latents, 1)
        check_integer("VectorQuantizer", "num_categories", num_categories, 2)
        check_integer("VectorQuantizer", "size", size, 1)
        if not 0 <= decay < 1:
            raise ValueError(
                f"VectorQuantizer: `decay` must lie in [0, 1), found {decay}."
            )
        self.num_latents = num_latents
        self.num_categories = num_categories
        self.size = size
        self.decay = decay
        self.seed = seed
        shape = (num_latents, num_categories)
        options: dict[str, Any] = {
            "trainable": False,
            "dtype": "float32",
            "autocast": False,
            "aggregation": "only_first_replica",
        }
        self.counts = self.add_weight(
            name="counts", shape=shape, initializer="ones", **options
        )
        self.codes = self.add_weight(
            name="codes",
            shape=(*shape, size),
            initializer=keras.initializers.RandomNormal(stddev=size**-0.5, seed=seed),
            **options,
        )
        self.built = True

    def codebooks(self) -> tf.Tensor:
        """Returns the codes, `[L, C, D]`."""
        return tf.convert_to_tensor(self.codes)

    def call(
        self,
        inputs: tf.Tensor,
        training: bool = False,
        weights: tf.Tensor | None = None,
    ) -> Quantized:
        check_shapes(
            "VectorQuantizer", inputs=(inputs, f"B {self.num_latents} {self.size}")
        )
        vectors = tf.cast(inputs, tf.float32)
        books = self.codebooks()
        # |z - e|^2 without |z|^2, which is the same for all codes.
        scores = tf.reduce_sum(books**2, axis=-1)
        scores = scores - 2 * tf.einsum("bld,lcd->blc", vectors, books)
        codes = tf.argmin(scores, axis=-1, output_type=tf.int32)
        chosen = tf.one_hot(codes, self.num_categories)
        nearest = tf.einsum("blc,lcd->bld", chosen, books)
        if training:
            if weights is not None:
                chosen *= tf.cast(weights, tf.float32)[:, tf.newaxis, tf.newaxis]
            self._move(tf.stop_gradient(vectors), chosen)
        commitment = tf.reduce_sum((vectors - nearest) ** 2, axis=(1, 2))
        straight = vectors + tf.stop_gradient(nearest - vectors)
        return Quantized(tf.cast(straight, inputs.dtype), codes, commitment)

    def _move(self, vectors: tf.Tensor, chosen: tf.Tensor) -> None:
        counts = tf.reduce_sum(chosen, axis=0)
        sums = tf.einsum("blc,bld->lcd", chosen, vectors)
        counts, sums = all_reduce([counts, sums])
        news = 1 - self.decay
        before = self.codes.value
        kept = self.decay * self.counts.value + news * counts
        # What the moving averages of sums and counts have as their quotient, without
        # the sums: both vanish where a code is not used for long.
        share = tf.math.divide_no_nan(news, kept)[:, :, tf.newaxis]
        difference = sums - counts[:, :, tf.newaxis] * before
        self.codes.assign(before + share * difference)
        self.counts.assign(kept)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_latents": self.num_latents,
            "num_categories": self.num_categories,
            "size": self.size,
            "decay": self.decay,
            "seed": self.seed,
        }
