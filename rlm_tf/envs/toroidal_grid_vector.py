"""Many toroidal grids at once, for gymnasium's `make_vec`."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from rlm_tf.checks import check_integer
from rlm_tf.envs.grid_dynamics import ACTIONS
from rlm_tf.envs.toroidal_grid import ToroidalGrid, state_number, state_option


class ToroidalGridVector(gymnasium.vector.VectorEnv):
    """`num_envs` copies of `ToroidalGrid`, stepped together in NumPy.

    Episodes end by truncation alone, all together. As gymnasium's own vector
    environments do by default, the step after a truncation resets (its actions are
    ignored, its rewards are zero).

    Args:
        num_envs: Copies.
        max_episode_steps: Steps of an episode; None: it never ends.
        **options: Those of `ToroidalGrid`.
    """

    metadata = {  # noqa: RUF012
        **ToroidalGrid.metadata,
        "autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self, num_envs: int = 1, max_episode_steps: int | None = None, **options: Any
    ):
        check_integer("ToroidalGridVector", "num_envs", num_envs, 1)
        if max_episode_steps is not None:
            check_integer(
                "ToroidalGridVector", "max_episode_steps", max_episode_steps, 1
            )
        self.one = ToroidalGrid(**options)
        self.num_envs = num_envs
        self.max_episode_steps = max_episode_steps
        self.render_mode = self.one.render_mode
        self.single_observation_space = self.one.observation_space
        self.single_action_space = self.one.action_space
        batch = gymnasium.vector.utils.batch_space
        self.observation_space = batch(self.single_observation_space, num_envs)
        self.action_space = batch(self.single_action_space, num_envs)
        self.states: np.ndarray | None = None
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts episodes in states drawn uniformly.

        Args:
            seed: Of the generator, or None to go on with it.
            options: `{"state": (y, x)}` to start all of them there.

        Returns:
            Observations, and `{"state": int [num_envs]}`.
        """
        if seed is not None:
            # One generator draws for all: a seed for each would not say more.
            check_integer("ToroidalGridVector", "seed", seed, 0)
        super().reset(seed=seed)
        size, given = self.one.size, state_option(options)
        if given is None:
            self.states = self.np_random.integers(size**2, size=self.num_envs)
        else:
            self.states = np.full(self.num_envs, state_number(given, size))
        self._steps = 0
        return self._observe()

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Moves all; returns observations, rewards, False, truncated, info.

        Raises:
            ValueError: If `actions` are not `num_envs` actions, or `reset` was not
                called.
        """
        if self.states is None:
            raise ValueError("ToroidalGridVector: call `reset` before `step`.")
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or not self.action_space.contains(actions):
            raise ValueError(
                f"ToroidalGridVector: `actions` must be {self.num_envs} integers in "
                f"[0, {len(ACTIONS)}), found {actions!r}."
            )
        never = np.zeros(self.num_envs, bool)
        if self.max_episode_steps is not None and self._steps >= self.max_episode_steps:
            observed, info = self.reset()
            return observed, np.zeros(self.num_envs), never, never.copy(), info
        self.states = self.one.moves[self.states, actions].astype(np.int64)
        self._steps += 1
        truncated = np.full(self.num_envs, self._steps == self.max_episode_steps)
        observed, info = self._observe()
        return observed, self.one.rewards[self.states], never, truncated, info

    def render(self) -> tuple[Any, ...] | None:
        """Returns what `ToroidalGrid.render` returns, of each copy."""
        if self.render_mode is None or self.states is None:
            return None
        pictures = []
        for state in self.states:
            self.one.state = int(state)
            pictures.append(self.one.render())
        return tuple(pictures)

    def _observe(self) -> tuple[np.ndarray, dict[str, Any]]:
        assert self.states is not None
        y, x = np.divmod(self.states, self.one.size)
        observed = x if self.one.observation == "x" else np.stack([y, x], axis=-1)
        return observed, {"state": self.states.copy()}
