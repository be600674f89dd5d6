"""Latent variables: families of posteriors, their priors, and samples of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import keras
import tensorflow as tf
import tensorflow_probability as tfp

from rlm_tf.checks import check_integer
from rlm_tf.layers.replica_noise import replica_noise
from rlm_tf.layers.seeded_initializers import random_of
from rlm_tf.numerics import at_least_single

tfd = tfp.distributions
Distribution: TypeAlias = Any  # TFP has no types.


class Latents(keras.layers.Layer):
    """Base class: maps features of x to q(z|x), and has the prior p(z).

    Latents are floating-point tensors; what shape an example's have is `event_shape`.
    Distributions are `tfp.distributions` over it, in single precision or wider.

    Args:
        trainable_prior: Whether the prior is learnt, from the fixed one on.
        seed: Of the initialisation.
        **kwargs: Of `keras.layers.Layer`.
    """

    # Whether samples are a differentiable function of the posterior's parameters.
    is_reparameterised: ClassVar[bool]

    def __init__(
        self, *, trainable_prior: bool = False, seed: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.trainable_prior = trainable_prior
        self.seed = seed

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one example's latents."""
        raise NotImplementedError(f"{type(self).__name__} has no `event_shape`.")

    def call(self, features: tf.Tensor) -> dict[str, tf.Tensor]:
        """Maps features `[B, F]` to the parameters of q(z|x), each `[B, ...]`."""
        raise NotImplementedError(f"{type(self).__name__} has no `call`.")

    def posterior(self, parameters: dict[str, tf.Tensor]) -> Distribution:
        """Returns q(z|x), batch `[B]`."""
        raise NotImplementedError(f"{type(self).__name__} has no `posterior`.")

    def prior(self) -> Distribution:
        """Returns p(z), no batch."""
        raise NotImplementedError(f"{type(self).__name__} has no `prior`.")

    @property
    def prior_variables(self) -> list[keras.Variable]:
        """What the prior has learnt, empty if it is fixed."""
        raise NotImplementedError(f"{type(self).__name__} has no `prior_variables`.")

    def sample(
        self,
        parameters: dict[str, tf.Tensor],
        num_samples: int,
        seed_generator: keras.random.SeedGenerator,
    ) -> tf.Tensor:
        """Returns independent draws from q(z|x), `[K, B, *event_shape]`."""
        raise NotImplementedError(f"{type(self).__name__} has no `sample`.")

    def centre(self, parameters: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns the mean of q(z|x), `[B, *event_shape]`."""
        return self.posterior(parameters).mean()

    def nearest(self, values: tf.Tensor) -> tf.Tensor:
        """Returns the possible latents that are nearest to values `[..., *event]`."""
        raise NotImplementedError(f"{type(self).__name__} has no `nearest`.")

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "trainable_prior": self.trainable_prior,
            "seed": self.seed,
        }

    def _noise(
        self,
        draw: Callable[[Any, tf.Tensor], tf.Tensor],
        parameters: tf.Tensor,
        num_samples: int,
        seed_generator: keras.random.SeedGenerator,
    ) -> tf.Tensor:
        """Returns noise `[K, B, *event_shape]` for parameters `[B, *event_shape]`."""
        rows = parameters.shape[0] or tf.shape(parameters)[0]
        shape = [num_samples, rows, *self.event_shape]
        return replica_noise(draw, shape, seed_generator, batch_axis=1)

    def _head(self, units: int, number: int) -> keras.layers.Dense:
        seeds = random_of(self, self.seed).integers(2**31, size=number + 1)
        initializer = keras.initializers.GlorotUniform(seed=int(seeds[number]))
        return keras.layers.Dense(
            units, kernel_initializer=initializer, dtype=self.dtype_policy
        )


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

    def nearest(self, values: tf.Tensor) -> tf.Tensor:
        return values

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "size": self.size}


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

    def nearest(self, values: tf.Tensor) -> tf.Tensor:
        best = tf.argmax(values, axis=-1)
        return tf.one_hot(best, self.num_categories, dtype=values.dtype)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_latents": self.num_latents,
            "num_categories": self.num_categories,
        }


def _independent(logits: tf.Tensor) -> Distribution:
    one_hot = tfd.OneHotCategorical(logits=logits, dtype=logits.dtype)
    return tfd.Independent(one_hot, reinterpreted_batch_ndims=1)
