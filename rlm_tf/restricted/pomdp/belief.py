"""What an agent believes about the part of the state that it does not see."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.typing import TensorLike


@keras.saving.register_keras_serializable("rlm_tf")
class Belief(keras.layers.Layer):
    """Which states stand behind an observation, and with what probability.

    The analogue of the extended contexts of a short context, in full: the induced
    policy of an observation is the mean of the policy over these states.

    Args:
        num_states: States, S.
        num_observations: Observations, O.
        num_completions: States behind an observation at most, K.
    """

    def __init__(
        self,
        num_states: int,
        num_observations: int,
        num_completions: int,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        for name, value in (
            ("num_states", num_states),
            ("num_observations", num_observations),
            ("num_completions", num_completions),
        ):
            check_integer("Belief", name, value, 1)
        self.num_states = num_states
        self.num_observations = num_observations
        self.num_completions = num_completions

        def table(shape: tuple[int, ...], dtype: str, name: str) -> keras.Variable:
            return self.add_weight(
                shape=shape,
                dtype=dtype,
                name=name,
                initializer="zeros",
                trainable=False,
            )

        shape = (num_completions, num_observations)
        self.states = table(shape, "int32", "states")
        self.log_weights = table(shape, "float32", "log_weights")
        self.observations = table((num_states,), "int32", "observations")
        self.built = True

    @classmethod
    def from_matrix(cls, beliefs: npt.ArrayLike) -> Belief:
        """Returns the belief of a matrix of probabilities.

        Args:
            beliefs: `[O, S]`; rows are distributions, and every state stands behind
                one observation, the only one with a positive entry in its column.

        Raises:
            ValueError: If that is not so.
        """
        matrix = np.asarray(beliefs, np.float64)
        if matrix.ndim != 2 or matrix.min(initial=0) < 0 or not matrix.size:
            raise ValueError(
                "Belief.from_matrix: `beliefs` must have axes [O S] and no negative "
                f"entry, found shape {matrix.shape}."
            )
        if not np.allclose(matrix.sum(axis=1), 1.0, atol=1e-6):
            raise ValueError("Belief.from_matrix: rows of `beliefs` must sum to 1.")
        behind = matrix > 0
        if not np.all(behind.sum(axis=0) == 1):
            state = int(np.argmax(behind.sum(axis=0) != 1))
            raise ValueError(
                "Belief.from_matrix: every state must stand behind one observation; "
                f"state {state} stands behind {int(behind[:, state].sum())}."
            )
        count = int(behind.sum(axis=1).max())
        belief = cls(matrix.shape[1], matrix.shape[0], count)
        # The states with positive probability come first in their order.
        order = np.argsort(~behind, axis=1, kind="stable")[:, :count]
        weights = np.take_along_axis(matrix, order, axis=1)
        with np.errstate(divide="ignore"):
            belief.log_weights.assign(np.log(weights).T)
        belief.states.assign(order.T)
        belief.observations.assign(behind.argmax(axis=0))
        return belief

    def observe(self, states: TensorLike) -> tf.Tensor:
        """Returns what is observed in states `[...]`: int32 `[...]`."""
        return tf.gather(tf.convert_to_tensor(self.observations), states)

    def completions(self, observations: TensorLike) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the states behind observations, and their log-probabilities.

        Args:
            observations: int `[...]`, in [0, O).

        Returns:
            States int32 `[K, ...]` and log-weights float32 `[K, ...]`; entries beyond
            the states of an observation have weight minus infinity.
        """
        states = tf.convert_to_tensor(self.states)
        weights = tf.convert_to_tensor(self.log_weights)
        return (
            tf.gather(states, observations, axis=1),
            tf.gather(weights, observations, axis=1),
        )

    def call(self, observations: TensorLike) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns `completions(observations)`."""
        return self.completions(observations)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.update(
            num_states=self.num_states,
            num_observations=self.num_observations,
            num_completions=self.num_completions,
        )
        return config
