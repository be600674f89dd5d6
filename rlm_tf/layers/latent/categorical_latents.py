"""Independent categorical latents."""

from __future__ import annotations

import math
from typing import Any

import keras
import tensorflow as tf
import tensorflow_probability as tfp

from rlm_tf.checks import check_integer
from rlm_tf.layers.latent.latents import Distribution, Latents
from rlm_tf.numerics import at_least_single

tfd = tfp.distributions


@keras.saving.register_keras_serializable("rlm_tf")
class CategoricalLatents(Latents):
    """Independent categorical latents, as one-hot rows `[L, C]`.

    Their logits are an affine map of the features (Melis 2023, section 5.7.1, says
    softmax of the features themselves, which has not the size). The prior is uniform,
    or has learnt logits.

    Args:
        num_latents: L.
        num_categories: C.
        trainable_prior: See `Latents`.
        seed: Of the initialisation.
        **kwargs: Of `keras.layers.Layer`.
    """

    is_reparameterised = False

    def __init__(
        self, num_latents: int = 8, num_categories: int = 10, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        check_integer("CategoricalLatents", "num_latents", num_latents, 1)
        check_integer("CategoricalLatents", "num_categories", num_categories, 2)
        self.num_latents = num_latents
        self.num_categories = num_categories
        self.logits_head = self._head(num_latents * num_categories, 0)

    @property
    def event_shape(self) -> tuple[int, ...]:
        return (self.num_latents, self.num_categories)

    @property
    def entropy(self) -> float:
        """The entropy of the uniform prior, nats: no latents can say more."""
        return self.num_latents * math.log(self.num_categories)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.logits_head.build(input_shape)
        if self.trainable_prior:
            self.prior_logits = self.add_weight(
                name="prior_logits", shape=self.event_shape, initializer="zeros"
            )
        self.built = True

    def call(self, features: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns `logits`, `[B, L, C]`."""
        logits = at_least_single(self.logits_head(features))
        return {"logits": tf.reshape(logits, [-1, *self.event_shape])}

    def posterior(self, parameters: dict[str, tf.Tensor]) -> Distribution:
        return _independent(parameters["logits"])

    def prior(self) -> Distribution:
        if self.trainable_prior:
            return _independent(at_least_single(self.prior_logits))
        dtype = at_least_single(tf.zeros([], self.compute_dtype)).dtype
        return _independent(tf.zeros(self.event_shape, dtype))

    @property
    def prior_variables(self) -> list[keras.Variable]:
        return [self.prior_logits] if self.trainable_prior else []

    def sample(
        self,
        parameters: dict[str, tf.Tensor],
        num_samples: int,
        seed_generator: keras.random.SeedGenerator,
    ) -> tf.Tensor:
        logits = parameters["logits"]

        def draw(shape: Any, seed: tf.Tensor) -> tf.Tensor:
            # Never zero, whose logarithm is infinite.
            least = logits.dtype.as_numpy_dtype(2.0**-100)
            return tf.random.stateless_uniform(shape, seed, least, 1.0, logits.dtype)

        noise = self._noise(draw, logits, num_samples, seed_generator)
        # The largest of logits with Gumbel noise is a draw.
        drawn = tf.argmax(
            tf.stop_gradient(logits) - tf.math.log(-tf.math.log(noise)), -1
        )
        return tf.one_hot(drawn, self.num_categories, dtype=logits.dtype)

    def between(
        self, first: tf.Tensor, last: tf.Tensor, shares: tf.Tensor
    ) -> tf.Tensor:
        """Changes latents that differ one after the other, those in front first."""
        codes = [tf.argmax(end, axis=-1)[:, tf.newaxis] for end in (first, last)]
        differ = tf.cast(tf.not_equal(*codes), shares.dtype)
        # What number `n` of those that differ changes at the share `(n - 1/2) / all`.
        places = tf.cumsum(differ, axis=-1) - 0.5
        count = tf.reduce_sum(differ, axis=-1, keepdims=True)
        changed = shares[tf.newaxis, :, tf.newaxis] * count >= places
        chosen = tf.where(changed, codes[1], codes[0])
        return tf.one_hot(chosen, self.num_categories, dtype=first.dtype)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_latents": self.num_latents,
            "num_categories": self.num_categories,
        }


def _independent(logits: tf.Tensor) -> Distribution:
    one_hot = tfd.OneHotCategorical(logits=logits, dtype=logits.dtype)
    return tfd.Independent(one_hot, reinterpreted_batch_ndims=1)
