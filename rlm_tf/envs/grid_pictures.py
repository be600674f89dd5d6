"""Pictures of a grid: its landscape and where the agent is."""

from __future__ import annotations

import numpy as np

_CELL = 24  # Pixels on a side.
_LOW, _HIGH = np.array([26, 32, 64]), np.array([253, 214, 92])
_AGENT = np.array([214, 40, 57])
_SHADES = " .:-=+*#%"


def picture_of(landscape: np.ndarray, state: int | None) -> np.ndarray:
    """Returns uint8 `[H, W, 3]`: brighter cells are better, a red square the agent.

    Args:
        landscape: `[size, size]`, the reward of each cell.
        state: Number of the agent's cell, or None for no agent.
    """
    shades = _scaled(landscape)[..., np.newaxis]
    cells = np.rint(_LOW + shades * (_HIGH - _LOW)).astype(np.uint8)
    picture = cells.repeat(_CELL, axis=0).repeat(_CELL, axis=1)
    if state is not None:
        y, x = np.multiply(divmod(state, len(landscape)), _CELL)
        margin = _CELL // 4
        inner = slice(margin, _CELL - margin)
        picture[y : y + _CELL, x : x + _CELL][inner, inner] = _AGENT
    return picture


def text_of(landscape: np.ndarray, state: int | None) -> str:
    """Returns one line a row: denser signs are better cells, `A` is the agent."""
    levels = np.rint(_scaled(landscape) * (len(_SHADES) - 1)).astype(int)
    rows = [[_SHADES[level] for level in row] for row in levels]
    if state is not None:
        y, x = divmod(state, len(landscape))
        rows[y][x] = "A"
    return "\n".join("".join(row) for row in rows) + "\n"


def _scaled(landscape: np.ndarray) -> np.ndarray:
    low, high = landscape.min(), landscape.max()
    return (landscape - low) / max(high - low, np.finfo(float).tiny)
