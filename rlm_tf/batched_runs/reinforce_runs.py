"""Many runs of REINFORCE with induced model matching at once, in one compiled graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_shapes
from rlm_tf.envs import Trajectories, rollout
from rlm_tf.layers.basic.discrete_policy import WEIGHT_NAMES, initial_weights, logits_of
from rlm_tf.objectives.imm import induced_kl_divergence
from rlm_tf.objectives.policy_gradient import policy_gradient_loss, rewards_to_go
from rlm_tf.restricted import Belief
from rlm_tf.typing import TensorLike

Weights = dict[str, tf.Tensor]


class GridTables(NamedTuple):
    """What runs are made of.

    Attributes:
        moves: int32 `[S, A]`, see `rlm_tf.envs.next_states`.
        rewards: `[S]`, see `rlm_tf.envs.reward_landscape`.
        belief: States behind each observation.
    """

    moves: np.ndarray
    rewards: np.ndarray
    belief: Belief


class ReinforceRuns:
    """Trains R policies side by side: the arms and seeds of a study.

    Every run takes the steps that `ReinforceIMM` with a `DiscretePolicy`, plain `Adam`
    and one trajectory an epoch takes for the same draws. All states' policies are
    computed once an epoch: acting, the policy gradient and the exact induced policies
    read them.

    Args:
        tables: The environment and the belief.
        hidden_units: Of each policy.
        discount: Of rewards to go.
        learning_rate: Of Adam (beta 0.9 and 0.999, epsilon 1e-8).
    """

    def __init__(
        self,
        tables: GridTables,
        hidden_units: int = 32,
        discount: float = 0.9,
        learning_rate: float = 1e-2,
    ):
        self.tables = tables
        self.hidden_units = hidden_units
        self.discount = discount
        self.learning_rate = learning_rate
        self._train = tf.function(self._train_in_graph, jit_compile=True)
        self._act = tf.function(self._act_in_graph, jit_compile=True)

    def initial(self, seeds: list[int]) -> Weights:
        """Returns initial weights, `[R, ...]` by name, those of `DiscretePolicy`."""
        num_states, num_actions = self.tables.moves.shape
        each = [
            initial_weights(num_states, num_actions, self.hidden_units, seed)
            for seed in seeds
        ]
        return {
            name: tf.stack([weights[name] for weights in each]) for name in WEIGHT_NAMES
        }

    def train(
        self,
        weights: Weights,
        starts: TensorLike,
        uniforms: TensorLike,
        targets: TensorLike,
        coefficients: TensorLike,
        epochs: int | None = None,
    ) -> tuple[Weights, tf.Tensor]:
        """Trains for epochs of one trajectory each.

        The graph is compiled once for given shapes; trainings of several lengths share
        it if they get draws of the longest and say `epochs`.

        Args:
            weights: See `initial`.
            starts: int `[E, R]`.
            uniforms: `[E, T, R]`, draws that decide actions.
            targets: `[R, O, A]`, each run's restricted model.
            coefficients: `[R]`, lambda; 0 for plain REINFORCE.
            epochs: Only so many of the E; None: all.

        Returns:
            The weights after training, and the sum of rewards of each epoch `[E, R]`,
            0 for those that were not run.
        """
        starts, uniforms = tf.cast(starts, tf.int32), tf.cast(uniforms, tf.float32)
        targets = tf.cast(targets, tf.float32)
        coefficients = tf.cast(coefficients, tf.float32)
        check_shapes(
            "ReinforceRuns.train",
            starts=(starts, "E R"),
            uniforms=(uniforms, "E T R"),
            targets=(targets, "R O A"),
            coefficients=(coefficients, "R"),
        )
        if epochs is None:
            epochs = starts.shape[0]
        if not 0 <= epochs <= starts.shape[0]:
            raise ValueError(
                f"ReinforceRuns.train: `epochs` must lie in [0, {starts.shape[0]}], "
                f"the epochs that there are draws for; found {epochs}."
            )
        return self._train(
            weights, starts, uniforms, targets, coefficients, tf.constant(epochs)
        )

    def act(
        self, weights: Weights, starts: TensorLike, uniforms: TensorLike
    ) -> Trajectories:
        """Lets the policies act: starts `[R]`, uniforms `[T, R]`."""
        return self._act(
            weights, tf.cast(starts, tf.int32), tf.cast(uniforms, tf.float32)
        )

    def log_probs(self, weights: Weights) -> tf.Tensor:
        """Returns the policies in all states: `[R, S, A]`, nats."""
        weights = {
            name: value[:, tf.newaxis] if name.endswith("bias") else value
            for name, value in weights.items()
        }
        return tf.nn.log_softmax(logits_of(weights))

    # === Graphs ===

    def _act_in_graph(
        self, weights: Weights, starts: tf.Tensor, uniforms: tf.Tensor
    ) -> Trajectories:
        probs = tf.exp(self.log_probs(weights))
        return rollout(probs, starts, uniforms, self.tables.moves, self.tables.rewards)

    def _train_in_graph(
        self,
        weights: Weights,
        starts: tf.Tensor,
        uniforms: tf.Tensor,
        targets: tf.Tensor,
        coefficients: tf.Tensor,
        epochs: tf.Tensor,
    ) -> tuple[Weights, tf.Tensor]:
        zeros = {name: tf.zeros_like(value) for name, value in weights.items()}
        totals = tf.zeros(starts.shape)

        def epoch(
            number: tf.Tensor,
            weights: Weights,
            first: Weights,
            second: Weights,
            totals: tf.Tensor,
        ):
            seen = self._act_in_graph(weights, starts[number], uniforms[number])
            with tf.GradientTape() as tape:
                tape.watch(weights)
                loss = self._loss(weights, seen, targets, coefficients)
            gradients = tape.gradient(loss, weights)
            rate = tf.cast(number + 1, tf.float32)
            # As Keras' Adam: the corrections multiply the learning rate.
            rate = (
                self.learning_rate
                * tf.sqrt(1.0 - tf.pow(0.999, rate))
                / (1.0 - tf.pow(0.9, rate))
            )
            for name, gradient in gradients.items():
                first[name] += (gradient - first[name]) * (1 - 0.9)
                second[name] += (tf.square(gradient) - second[name]) * (1 - 0.999)
                weights[name] -= rate * first[name] / (tf.sqrt(second[name]) + 1e-8)
            total = tf.reduce_sum(seen.rewards, axis=0)
            totals = tf.tensor_scatter_nd_update(totals, [[number]], [total])
            return number + 1, weights, first, second, totals

        _, weights, _, _, totals = tf.while_loop(
            lambda number, *_: number < epochs,
            epoch,
            (tf.constant(0), weights, zeros, dict(zeros), totals),
        )
        return weights, totals

    def _loss(
        self,
        weights: Weights,
        seen: Trajectories,
        targets: tf.Tensor,
        coefficients: tf.Tensor,
    ) -> tf.Tensor:
        """Returns the sum over runs of their losses, a scalar."""
        log_probs = self.log_probs(weights)
        returns = rewards_to_go(seen.rewards, self.discount)
        # [T, R, A]: rows of each run's own table.
        num_states = self.tables.moves.shape[0]
        runs = tf.range(tf.shape(seen.states)[1])
        flat = tf.reshape(log_probs, [-1, log_probs.shape[-1]])
        visited = tf.gather(flat, runs * num_states + seen.states)
        loss = policy_gradient_loss(visited, seen.actions, returns).loss
        reinforce = tf.reduce_mean(loss, axis=0)
        # Every observation's divergence, weighted by how often it was made.
        observations = self.tables.belief.observe(seen.states)
        num_observations = self.tables.belief.num_observations
        shares = tf.reduce_mean(
            tf.one_hot(observations, num_observations), axis=0
        )  # [R, O]
        behind, log_weights = self.tables.belief.completions(tf.range(num_observations))
        samples = tf.transpose(tf.gather(log_probs, behind, axis=1), [1, 0, 2, 3])
        # [K, R, O, A] and [K, R, O].
        log_weights = tf.broadcast_to(
            log_weights[:, tf.newaxis], tf.shape(samples)[:-1]
        )
        divergence = induced_kl_divergence(targets, samples, log_weights).loss
        imm = tf.reduce_sum(shares * divergence, axis=-1)
        return tf.reduce_sum(reinforce + coefficients * imm)
