"""The data factor: how many times the text a recipe needs to reach what another has."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.kit.drawing import table
from experiments.kit.rows import Rows

Row = Mapping[str, Any]
# The recipe of `imm_lm`, untuned, by amounts of Penn Treebank: its rows.
_UNTUNED = (
    "scarcity/none-16th-seed1",
    "main/none-8th-seed1",
    "scarcity/none-4th-seed1",
    "scarcity/none-2th-seed1",
    "full/none-seed1",
)
_MOST_ARMS = 6


class Curve(dict[float, float]):
    """Test perplexity by share of the training text."""

    def share(self, target: float) -> float:
        """Returns which share of the text is needed for a perplexity."""
        fractions = sorted(self)
        return data_factor(target, fractions, [self[each] for each in fractions])


def untuned_curve(folder: pathlib.Path) -> Curve:
    """Returns what the untuned recipe has, from the rows of `imm_lm`.

    Args:
        folder: Of all studies.
    """
    rows = Rows(folder / "imm_lm")
    found = Curve()
    for name in _UNTUNED:
        row = rows.read(name, ("config", "perplexity"))
        found[row["config"]["fraction"]] = row["perplexity"]["test"]
    return found


def factors(
    arms: Mapping[str, Sequence[Row]], curve: Sequence[Row], untuned: Curve
) -> str:
    """Returns the table of data factors of the best arms; '' without a curve.

    Args:
        arms: Rows of study `arms` by arm, the best first.
        curve: Rows of study `curve`, those of `none` among them.
        untuned: Of the untuned recipe, alone.
    """
    recipes = {"untuned recipe, alone": untuned}
    for name, how in (("test", "alone"), ("mixed_test", "mixed")):
        found = Curve()
        own = [row for row in curve if row["arm"] == "none"]
        for fraction in sorted({row["fraction"] for row in own}):
            found[fraction] = float(
                np.mean([row[name] for row in own if row["fraction"] == fraction])
            )
        if len(found) > 1:
            recipes[f"tuned `none`, {how}"] = found
    lines = []
    for arm in list(arms)[:_MOST_ARMS]:
        reached = float(np.mean([row["mixed_test"] for row in arms[arm]]))
        share = arms[arm][0]["fraction"]
        cells = [_cell(recipe, reached, share) for recipe in recipes.values()]
        lines.append((arm, f"{reached:.1f}", *cells))
    if not lines:
        return ""
    return table(("arm, mixed", "test perplexity", *recipes), lines)


def _cell(recipe: Curve, reached: float, share: float) -> str:
    """Returns a data factor; one beyond the amounts that were tried is marked."""
    factor = recipe.share(reached) / share
    beyond = not min(recipe.values()) <= reached <= max(recipe.values())
    return f"{factor:.2f}{'*' if beyond else ''}"


def data_factor(
    target: float, fractions: Sequence[float], perplexities: Sequence[float]
) -> float:
    """Returns which share of the text a recipe needs for a perplexity.

    By a line through the logarithms of the two amounts around it, or of the last two
    at an end.

    Args:
        target: The perplexity.
        fractions: Shares of the text, ascending.
        perplexities: What the recipe has with each.
    """
    x, y = np.log(fractions), np.log(perplexities)
    place = int(np.clip(np.searchsorted(-y, -math.log(target)), 1, len(x) - 1))
    slope = (x[place] - x[place - 1]) / (y[place] - y[place - 1])
    return float(np.exp(x[place] + slope * (math.log(target) - y[place])))
