"""Trains and judges policies on the grid, all arms and seeds of a cell at once."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tqdm

from experiments.kit.grid_config import ARMS, FIXED, ReinforceConfig
from rlm_tf.batched_runs.reinforce_runs import GridTables
from rlm_tf.envs import (
    grid_pomdp,
    next_states,
    reward_landscape,
    rollout,
    trajectory_draws,
)
from rlm_tf.models import ReinforceRuns, published_reinforce_ratio
from rlm_tf.objective_model.term import coefficient_from_ratio
from rlm_tf.restricted import Belief, FastInformedBound, alpha_vector_policy


class Arm(NamedTuple):
    """One arm.

    Attributes:
        target: The restricted policy, `[O, A]`.
        coefficient: lambda.
        mixture: mu: after training, (1 - mu) Q + mu P_hat acts.
    """

    target: np.ndarray
    coefficient: float
    mixture: float = 0.0


class GridStudy:
    """The environment, the restricted policies and the learner of a configuration.

    Args:
        config: The configuration.
        noising: Whether targets are pitted against the policy itself instead of the
            induced one: then every state is its own observation, and arms have targets
            `[S, A]`.
    """

    def __init__(self, config: ReinforceConfig, noising: bool = False):
        self.config = config
        pomdp = grid_pomdp(config.size, config.pomdp_reward_width)
        self.alphas = FastInformedBound(
            pomdp.transition, pomdp.observation, pomdp.reward, config.discount
        ).solve()
        self.beliefs = pomdp.beliefs
        # All trainings get draws for as many epochs: they share one compiled graph.
        self.longest = max(*config.epochs, *config.search_epochs)
        matrix = np.eye(config.size**2) if noising else pomdp.beliefs
        self.tables = GridTables(
            next_states(config.size),
            reward_landscape(config.size, width=config.reward_width),
            Belief.from_matrix(matrix),
        )
        self.runs = ReinforceRuns(
            self.tables, config.hidden_units, config.discount, config.learning_rate
        )
        self._rewards = tf.function(self._rewards_in_graph, jit_compile=True)

    def target(self, temperature: float) -> np.ndarray:
        """Returns a restricted policy `[O, A]`."""
        policy = alpha_vector_policy(self.alphas, self.beliefs, temperature)
        return policy.probs(np.arange(self.config.size)).numpy()

    def returns(self, arms: list[Arm], epochs: int) -> np.ndarray:
        """Trains every arm with every seed for so many epochs, and judges it.

        A seed has one initialisation and one set of draws, whatever the arm; another
        number of epochs has draws of its own.

        Returns:
            `[arms, seeds]`, the mean sum of rewards of the rollouts.
        """
        config, seeds = self.config, range(1, self.config.runs + 1)
        num_arms, num_states = len(arms), config.size**2
        training = [
            trajectory_draws(
                [seed, epochs], self.longest, config.trajectory, 1, num_states
            )
            for seed in seeds
        ]
        judging = [
            trajectory_draws(
                [seed, epochs, 1], 1, config.horizon, config.rollouts, num_states
            )
            for seed in seeds
        ]
        targets = np.repeat([arm.target for arm in arms], config.runs, axis=0)
        weights, _ = self.runs.train(
            self.runs.initial([*seeds] * num_arms),
            np.tile(np.concatenate([d.starts for d in training], 1), num_arms),
            np.tile(np.concatenate([d.uniforms for d in training], 2), num_arms),
            targets,
            np.repeat([arm.coefficient for arm in arms], config.runs),
            epochs,
        )
        mixtures = np.repeat([arm.mixture for arm in arms], config.runs)
        behind = targets[:, self.tables.belief.observations.numpy()]
        sums = np.zeros(num_arms * config.runs)
        for number in range(config.rollouts):
            starts = np.array([d.starts[0, number] for d in judging])
            uniforms = np.stack([d.uniforms[0, :, number] for d in judging], axis=1)
            rewards = self._rewards(
                weights,
                tf.constant(behind, tf.float32),
                tf.constant(mixtures, tf.float32),
                tf.constant(np.tile(starts, num_arms), tf.int32),
                tf.constant(np.tile(uniforms, num_arms), tf.float32),
            )
            sums += rewards.numpy().sum(axis=0, dtype=np.float64)
        return (sums / config.rollouts).reshape(num_arms, config.runs)

    def _rewards_in_graph(
        self,
        weights: dict[str, tf.Tensor],
        targets: tf.Tensor,
        mixtures: tf.Tensor,
        starts: tf.Tensor,
        uniforms: tf.Tensor,
    ) -> tf.Tensor:
        """Returns rewards `[T, R]` of mixtures with targets `[R, S, A]`."""
        shares = mixtures[:, tf.newaxis, tf.newaxis]
        probs = (1 - shares) * tf.exp(self.runs.log_probs(weights)) + shares * targets
        moves, rewards, _ = self.tables
        return rollout(probs, starts, uniforms, moves, rewards).rewards


def trained_cells(config: ReinforceConfig) -> dict[str, Any]:
    """Returns the cells of Figure 3, and what they took after start-up."""
    study = GridStudy(config)
    targets = {
        name: study.target(temperature or 0.0) for name, temperature in ARMS.items()
    }
    targets[FIXED] = targets["max-utility"]
    # Start-up: the graphs are compiled, once for all.
    study.returns([Arm(target, 0.0) for target in targets.values()], 1)
    began = time.perf_counter()
    cells = []
    for epochs in tqdm.tqdm(config.epochs, unit="epoch count", disable=None):
        ratio = published_reinforce_ratio(epochs)
        coefficients = {name: coefficient_from_ratio(ratio) for name in targets}
        coefficients |= {"none": 0.0, FIXED: config.fixed_coefficient}
        arms = [Arm(targets[name], coefficients[name]) for name in targets]
        for name, values in zip(targets, study.returns(arms, epochs), strict=True):
            cells.append(
                {
                    "arm": name,
                    "epochs": epochs,
                    "coefficient": coefficients[name],
                    "returns": values.tolist(),
                }
            )
    return {"cells": cells, "seconds_after_start": time.perf_counter() - began}
