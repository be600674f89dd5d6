"""Normal latents with independent components."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
import tensorflow_probability as tfp

from rlm_tf.checks import check_integer
from rlm_tf.layers.latent.latents import Distribution, Latents
from rlm_tf.numerics import at_least_single

tfd = tfp.distributions


@keras.saving.register_keras_serializable("rlm_tf")
class NormalLatents(Latents):
    """Normal latents with independent components: `q(z|x) = N(f(o), diag exp g(o))`.

    f and g are affine maps of the features o (Melis 2023, section 5.7.1). The prior is
    standard normal, or independent components with learnt means and variances.

    Args:
        size: D, the number of latents.
        trainable_prior: See `Latents`.
        seed: Of the initialisation.
        **kwargs: Of `keras.layers.Layer`.
    """

    is_reparameterised = True

    def __init__(self, size: int = 40, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_integer("NormalLatents", "size", size, 1)
        self.size = size
        self.mean_head = self._head(size, 0)
        self.log_variance_head = self._head(size, 1)

    @property
    def event_shape(self) -> tuple[int, ...]:
        return (self.size,)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.mean_head.build(input_shape)
        self.log_variance_head.build(input_shape)
        if self.trainable_prior:
            self.prior_mean = self.add_weight(
                name="prior_mean", shape=(self.size,), initializer="zeros"
            )
            self.prior_log_variance = self.add_weight(
                name="prior_log_variance", shape=(self.size,), initializer="zeros"
            )
        self.built = True

    def call(self, features: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns `mean` and `log_variance`, `[B, D]`."""
        return {
            "mean": at_least_single(self.mean_head(features)),
            "log_variance": at_least_single(self.log_variance_head(features)),
        }

    def posterior(self, parameters: dict[str, tf.Tensor]) -> Distribution:
        scale = tf.exp(0.5 * parameters["log_variance"])
        return tfd.MultivariateNormalDiag(parameters["mean"], scale)

    def prior(self) -> Distribution:
        if not self.trainable_prior:
            dtype = at_least_single(tf.zeros([], self.compute_dtype)).dtype
            zeros = tf.zeros([self.size], dtype)
            return tfd.MultivariateNormalDiag(zeros, tf.ones_like(zeros))
        log_variance = at_least_single(self.prior_log_variance)
        return tfd.MultivariateNormalDiag(
            at_least_single(self.prior_mean), tf.exp(0.5 * log_variance)
        )

    @property
    def prior_variables(self) -> list[keras.Variable]:
        if not self.trainable_prior:
            return []
        return [self.prior_mean, self.prior_log_variance]

    def sample(
        self,
        parameters: dict[str, tf.Tensor],
        num_samples: int,
        seed_generator: keras.random.SeedGenerator,
    ) -> tf.Tensor:
        mean = parameters["mean"]

        def draw(shape: Any, seed: tf.Tensor) -> tf.Tensor:
            return tf.random.stateless_normal(shape, seed, dtype=mean.dtype)

        noise = self._noise(draw, mean, num_samples, seed_generator)
        return mean + tf.exp(0.5 * parameters["log_variance"]) * noise

    def between(
        self, first: tf.Tensor, last: tf.Tensor, shares: tf.Tensor
    ) -> tf.Tensor:
        """Returns points of the straight line."""
        shares = shares[tf.newaxis, :, tf.newaxis]
        return (1.0 - shares) * first[:, tf.newaxis] + shares * last[:, tf.newaxis]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "size": self.size}
