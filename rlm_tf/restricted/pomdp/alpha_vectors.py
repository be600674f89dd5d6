"""Solvers of partially observable Markov decision processes: alpha vectors.

One vector per action approximates the optimal value: for a belief b over states, the
utility of an action is `b . alpha_a`. Sums over states are exact, in float64.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_integer


class FastInformedBound:
    """The fast informed bound: one alpha vector per action.

        alpha_a(s) <- R(s, a)
            + discount * sum_o max_a' sum_s' T(s' | s, a) O(o | a, s') alpha_a'(s')

    from zeros, until no entry changes by as much as `tolerance`. It lies between the
    optimal value and that of `QMDP`. With deterministic T and O it is Q-iteration.

    Source: Kochenderfer, Wheeler and Wray, Algorithms for Decision Making, section
    21.3; defaults of FIBSolver.jl, which Muneeb and Ohannessian used.

    Args:
        transition: `[S, A, S']`, probabilities of the next state.
        observation: `[A, S', O]`, probabilities of what is observed there.
        reward: `[S, A]`.
        discount: In [0, 1).
        tolerance: Sup-norm of the last change, positive.
        max_iterations: Sweeps after which it stops anyway.

    Raises:
        ValueError: If shapes do not fit, rows are no distributions, or a number is out
            of range.
    """

    def __init__(
        self,
        transition: npt.ArrayLike,
        observation: npt.ArrayLike,
        reward: npt.ArrayLike,
        discount: float,
        tolerance: float = 1e-3,
        max_iterations: int = 100,
    ):
        self._iteration = _Iteration(
            "FastInformedBound",
            transition,
            reward,
            discount,
            tolerance,
            max_iterations,
        )
        states, actions = self._iteration.reward.shape
        self.observation = _array("FastInformedBound", "observation", observation, 3)
        if self.observation.shape[:2] != (actions, states):
            raise ValueError(
                f"FastInformedBound: `observation` must have axes [A S' O] with A = "
                f"{actions} and S' = {states}, found shape {self.observation.shape}."
            )
        _check_distributions("FastInformedBound", "observation", self.observation)

    def solve(self) -> np.ndarray:
        """Returns the alpha vectors, float64 `[S, A]`, of the last sweep."""
        transition = self._iteration.transition
        states, actions = self._iteration.reward.shape
        # [A, S', O], of which most is zero where observations are rare.
        seen = self.observation.shape[2]

        def backed_up(alphas: np.ndarray) -> np.ndarray:
            result = np.empty((states, actions))
            for action in range(actions):
                of_each = (
                    self.observation[action][:, :, np.newaxis]
                    * alphas[:, np.newaxis, :]
                )
                expected = transition[:, action] @ of_each.reshape(states, -1)
                best = expected.reshape(states, seen, actions).max(axis=-1)
                result[:, action] = best.sum(axis=-1)
            return result

        return self._iteration.run(backed_up)

    @property
    def num_iterations(self) -> int:
        """How many sweeps `solve` made."""
        return self._iteration.count


class QMDP:
    """Alpha vectors of an agent that believes to see everything after one step.

        alpha_a(s) <- R(s, a) + discount * sum_s' T(s' | s, a) max_a' alpha_a'(s')

    Arguments and stopping as `FastInformedBound`, without observations.
    """

    def __init__(
        self,
        transition: npt.ArrayLike,
        reward: npt.ArrayLike,
        discount: float,
        tolerance: float = 1e-3,
        max_iterations: int = 100,
    ):
        self._iteration = _Iteration(
            "QMDP", transition, reward, discount, tolerance, max_iterations
        )

    def solve(self) -> np.ndarray:
        """Returns the alpha vectors, float64 `[S, A]`, of the last sweep."""
        return self._iteration.run(
            lambda alphas: self._iteration.transition @ alphas.max(axis=-1)
        )

    @property
    def num_iterations(self) -> int:
        """How many sweeps `solve` made."""
        return self._iteration.count


class _Iteration:
    """Repeats `reward + discount * backup(alphas)` until it changes little."""

    def __init__(
        self,
        owner: str,
        transition: npt.ArrayLike,
        reward: npt.ArrayLike,
        discount: float,
        tolerance: float,
        max_iterations: int,
    ):
        self.transition = _array(owner, "transition", transition, 3)
        self.reward = _array(owner, "reward", reward, 2)
        states, actions, following = self.transition.shape
        if states != following or self.reward.shape != (states, actions):
            raise ValueError(
                f"{owner}: `transition` must have axes [S A S'] and `reward` [S A], "
                f"found shapes {self.transition.shape} and {self.reward.shape}."
            )
        _check_distributions(owner, "transition", self.transition)
        if not 0 <= discount < 1:
            raise ValueError(
                f"{owner}: `discount` must lie in [0, 1), found {discount}."
            )
        if not tolerance > 0:
            raise ValueError(
                f"{owner}: `tolerance` must be positive, found {tolerance}."
            )
        check_integer(owner, "max_iterations", max_iterations, 1)
        self.discount = discount
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.count = 0

    def run(self, backed_up: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        alphas = np.zeros_like(self.reward)
        for sweep in range(self.max_iterations):
            new = self.reward + self.discount * backed_up(alphas)
            change = np.max(np.abs(new - alphas))
            alphas, self.count = new, sweep + 1
            if change < self.tolerance:
                break
        return alphas


def _array(owner: str, name: str, value: npt.ArrayLike, rank: int) -> np.ndarray:
    array = np.asarray(value, np.float64)
    if array.ndim != rank or not array.size or not np.all(np.isfinite(array)):
        raise ValueError(
            f"{owner}: `{name}` must hold finite numbers along {rank} axes, found "
            f"shape {array.shape}."
        )
    return array


def _check_distributions(owner: str, name: str, probs: np.ndarray) -> None:
    sums = probs.sum(axis=-1)
    if probs.min() < 0 or not np.allclose(sums, 1.0, atol=1e-9):
        worst = np.unravel_index(np.argmax(np.abs(sums - 1)), sums.shape)
        raise ValueError(
            f"{owner}: every row of `{name}` must be a distribution; the smallest "
            f"entry is {probs.min():.3g}, and row {tuple(map(int, worst))} sums to "
            f"{sums[worst]:.6g}."
        )
