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
# The recipe of `imm_lm`, of which one dropout rate was tuned, by amounts of Penn
# Treebank: its rows, of 25 passes.
_UNTUNED = (
    "scarcity/none-16th-seed1",
    "main/none-8th-seed1",
    "main/none-8th-seed2",
    "main/none-8th-seed3",
    "scarcity/none-4th-seed1",
    "scarcity/none-2th-seed1",
)


# Arms without anything but other dropouts and rates.
_TUNED = ("none", "none-lighter")


class Curve(dict[float, float]):
    """Test perplexity by share of the training text."""

    def share(self, target: float) -> float:
        """Returns which share of the text is needed for a perplexity."""
        fractions = sorted(self)
        return data_factor(target, fractions, [self[each] for each in fractions])

    def spans(self, target: float) -> bool:
        """Returns whether a perplexity lies within those that were seen."""
        return min(self.values()) <= target <= max(self.values())


def untuned_curves(folder: pathlib.Path) -> dict[str, Curve]:
    """Returns what the recipe of `imm_lm` has, from its rows.

    Args:
        folder: Of all studies.
    """
    rows = Rows(folder / "imm_lm")
    needs = ("config", "perplexity", "interpolation")
    found = [rows.read(name, needs) for name in _UNTUNED]
    alone = [(r["config"]["fraction"], r["perplexity"]["test"]) for r in found]
    mixed = [
        (r["config"]["fraction"], r["interpolation"]["same"]["test"]) for r in found
    ]
    return {
        "recipe of `imm_lm`, alone": _means(alone),
        "recipe of `imm_lm`, mixed with its bigram": _means(mixed),
    }


def tuned_curves(rows: Sequence[Row]) -> dict[str, Curve]:
    """Returns what `none` has, from rows of study `curve`, and of `arms` where it ends.

    What was found on an eighth of the text is too much dropout for a half: of each
    amount the better ones of the settings that were tried count, by validation text,
    mixed.

    Args:
        rows: Of both studies.
    """
    own = [row for row in rows if row["arm"] in _TUNED]
    best = {}
    for share in sorted({row["fraction"] for row in own}):
        arms = [
            [row for row in own if (row["arm"], row["fraction"]) == (arm, share)]
            for arm in _TUNED
        ]
        best[share] = min(
            filter(None, arms),
            key=lambda rows: float(np.mean([row["mixed_valid"] for row in rows])),
        )
    found = {}
    for name, how in (("test", "alone"), ("mixed_test", "mixed")):
        curve = _means([(s, row[name]) for s, rows in best.items() for row in rows])
        if len(curve) > 1:
            found[f"tuned `none`, {how}"] = curve
    return found


def _means(pairs: Sequence[tuple[float, float]]) -> Curve:
    return Curve(
        (share, float(np.mean([value for own, value in pairs if own == share])))
        for share in sorted({share for share, _ in pairs})
    )


def factors(arms: Mapping[str, Sequence[Row]], recipes: Mapping[str, Curve]) -> str:
    """Returns the table of data factors of arms; '' without any.

    A star marks what lies beyond the amounts of text that the recipe was tried with.

    Args:
        arms: Rows of study `arms` by arm, the best first.
        recipes: Curves by the name of their recipe.
    """
    lines = []
    for arm in arms:
        cells = [factor_of(arms[arm], recipe) for recipe in recipes.values()]
        lines.append((arm, f"{_mixed(arms[arm]):.1f}", *cells))
    if not lines:
        return ""
    return table(("arm, mixed", "test perplexity", *recipes), lines)


def factor_of(rows: Sequence[Row], recipe: Curve) -> str:
    """Returns the data factor of an arm over a recipe, in words."""
    factor = recipe.share(_mixed(rows)) / rows[0]["fraction"]
    if math.isnan(factor):
        return ""
    return f"{factor:.2f}{'' if recipe.spans(_mixed(rows)) else '*'}"


def _mixed(rows: Sequence[Row]) -> float:
    return float(np.mean([row["mixed_test"] for row in rows]))


def data_factor(
    target: float, fractions: Sequence[float], perplexities: Sequence[float]
) -> float:
    """Returns which share of the text a recipe needs for a perplexity.

    By a line through the logarithms of the two amounts around it, or of the last two
    at an end. An amount that has no lower perplexity than a smaller one is left out.

    Args:
        target: The perplexity.
        fractions: Shares of the text, ascending.
        perplexities: What the recipe has with each.

    Returns:
        The share; nan if fewer than two amounts are left.
    """
    falling = [
        number
        for number, value in enumerate(perplexities)
        if value < min(perplexities[:number], default=math.inf)
    ]
    if len(falling) < 2:
        return math.nan
    x, y = (np.log(values)[falling] for values in (fractions, perplexities))
    place = int(np.clip(np.searchsorted(-y, -math.log(target)), 1, len(x) - 1))
    slope = (x[place] - x[place - 1]) / (y[place] - y[place - 1])
    return float(np.exp(x[place] + slope * (math.log(target) - y[place])))
