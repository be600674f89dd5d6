"""The toroidal grid as a gymnasium environment."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from rlm_tf.envs.grid_dynamics import ACTIONS, next_states, reward_landscape
from rlm_tf.envs.grid_pictures import picture_of, text_of

OBSERVATIONS = ("full", "x")


class ToroidalGrid(gymnasium.Env):
    """An agent on a torus, rewarded for being near its centre; never terminates.

    Actions are UP (y - 1), DOWN, LEFT (x - 1) and RIGHT; there is no staying. The
    reward of a step is the landscape's value where it leads. An episode starts in a
    state drawn uniformly, or in `reset(options={"state": (y, x)})`.

    Source: Muneeb and Ohannessian, arXiv 2402.12513, section 7 and appendix D.3.

    Args:
        size: Cells on a side.
        reward_shape: See `rlm_tf.envs.reward_landscape`.
        reward_width: Likewise; the published variance is 0.1.
        observation: `"full"`: int `(y, x)`, space `MultiDiscrete([size, size])`. `"x"`:
            int `x`, space `Discrete(size)`: what the agent of the POMDP sees.
        render_mode: None, `"rgb_array"` or `"ansi"`.

    Raises:
        ValueError: If an argument is not possible.
    """

    metadata = {  # noqa: RUF012
        "render_modes": ["rgb_array", "ansi"],
        "render_fps": 8,
    }

    def __init__(
        self,
        size: int = 11,
        reward_shape: str = "gaussian",
        reward_width: float = 0.1,
        observation: str = "full",
        render_mode: str | None = None,
    ):
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(
                f"ToroidalGrid: `render_mode` must be None or one of "
                f"{', '.join(self.metadata['render_modes'])}; found {render_mode!r}."
            )
        self.moves = next_states(size)
        self.rewards = reward_landscape(size, reward_shape, reward_width)
        self.size = size
        self.reward_shape = reward_shape
        self.reward_width = reward_width
        self.observation = observation
        self.render_mode = render_mode
        self.observation_space = observation_space(size, observation)
        self.action_space = gymnasium.spaces.Discrete(len(ACTIONS))
        self.state: int | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: Of the environment's generator, or None to go on with it.
            options: `{"state": (y, x)}` to start there.

        Returns:
            The observation, and `{"state": y * size + x}`.

        Raises:
            ValueError: If `options` names a state that is none.
        """
        super().reset(seed=seed)
        given = state_option(options)
        if given is None:
            self.state = int(self.np_random.integers(self.size**2))
        else:
            self.state = state_number(given, self.size)
        return self._observe()

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Moves; returns observation, reward, False, False, `{"state": ...}`.

        Raises:
            ValueError: If there is no such action, or no episode was started.
        """
        if self.state is None:
            raise ValueError("ToroidalGrid: call `reset` before `step`.")
        if isinstance(action, bool) or not self.action_space.contains(action):
            raise ValueError(
                f"ToroidalGrid: `action` must be an integer in [0, {len(ACTIONS)}), "
                f"found {action!r}."
            )
        self.state = int(self.moves[self.state, action])
        observed, info = self._observe()
        return observed, float(self.rewards[self.state]), False, False, info

    def render(self) -> Any:
        """Returns an image uint8 `[H, W, 3]`, or a text, as `render_mode` says."""
        if self.render_mode is None:
            gymnasium.logger.warn("ToroidalGrid: no `render_mode` was given to make().")
            return None
        draw = picture_of if self.render_mode == "rgb_array" else text_of
        return draw(self.rewards.reshape(self.size, self.size), self.state)

    def _observe(self) -> tuple[Any, dict[str, Any]]:
        y, x = divmod(int(self.state), self.size)  # type: ignore[arg-type]
        observed = np.int64(x) if self.observation == "x" else np.array([y, x])
        return observed, {"state": self.state}


def observation_space(size: int, observation: str) -> gymnasium.Space:
    """Returns the space of one observation; ValueError if there is no such kind."""
    if observation not in OBSERVATIONS:
        raise ValueError(
            f"ToroidalGrid: `observation` must be one of {', '.join(OBSERVATIONS)}; "
            f"found {observation!r}."
        )
    if observation == "x":
        return gymnasium.spaces.Discrete(size)
    return gymnasium.spaces.MultiDiscrete([size, size])


def state_option(options: dict[str, Any] | None) -> Any:
    """Returns `options["state"]` or None; ValueError if there is another option."""
    unknown = set(options or {}) - {"state"}
    if unknown:
        raise ValueError(
            "ToroidalGrid: `options` of `reset` may hold `state` alone, found "
            f"{', '.join(sorted(map(repr, unknown)))}."
        )
    return (options or {}).get("state")


def state_number(position: Any, size: int) -> int:
    """Returns `y * size + x`; ValueError unless `position` is a cell `(y, x)`."""
    found = np.asarray(position)
    whole = found.shape == (2,) and np.issubdtype(found.dtype, np.integer)
    if not whole or found.min() < 0 or found.max() >= size:
        raise ValueError(
            f"ToroidalGrid: `state` must be integers (y, x) in [0, {size}), found "
            f"{position!r}."
        )
    return int(found[0]) * size + int(found[1])
