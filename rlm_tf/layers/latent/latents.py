"""Latent variables: what families of posteriors and priors have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import keras
import tensorflow as tf

from rlm_tf.layers.basic.replica_noise import replica_noise
from rlm_tf.seeds import Seeds

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

    def between(
        self, first: tf.Tensor, last: tf.Tensor, shares: tf.Tensor
    ) -> tf.Tensor:
        """Returns latents on the way from one to another.

        Args:
            first: `[B, *event_shape]`.
            last: `[B, *event_shape]`.
            shares: `[S]` in [0, 1], of the way.

        Returns:
            `[B, S, *event_shape]`, possible latents.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `between`.")

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
        seeds = Seeds(self.seed, self).take(number + 1)
        initializer = keras.initializers.GlorotUniform(seed=seeds[number])
        return keras.layers.Dense(
            units, kernel_initializer=initializer, dtype=self.dtype_policy
        )
