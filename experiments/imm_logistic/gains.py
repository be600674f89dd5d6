"""Gains in accuracy, what they are worth in data, and the rule for the ratio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_POINTS = 4000


def gain(accuracies: Mapping[str, Sequence[float]]) -> tuple[float, float]:
    """Returns IMM's mean gain in accuracy, and its standard error.

    Args:
        accuracies: By arm, of the same data sets: `none`, `imm`.
    """
    paired = np.subtract(accuracies["imm"], accuracies["none"])
    return float(paired.mean()), float(np.std(paired, ddof=1) / np.sqrt(len(paired)))


def restricted_accuracy(definition: Mapping[str, Any]) -> float:
    """Returns how often the likelier label of the exact P_hat is right.

    Args:
        definition: Of the task: its coefficients, offset, and the bounds of the cube.
    """
    # TensorFlow is imported where it is used.
    from rlm_tf.data import LinearDiscriminant

    names = LinearDiscriminant._fields
    task = LinearDiscriminant(**{name: definition[name] for name in names})
    # Midpoints of as many cells of the first feature, which is uniform.
    places = (np.arange(_POINTS) + 0.5) / _POINTS
    seen = task.low + (task.high - task.low) * places[:, np.newaxis]
    return float(task.restricted().probs(seen).numpy().max(axis=1).mean())


def equivalent_sizes(
    sizes: Sequence[int], baseline: Sequence[float], improved: Sequence[float]
) -> np.ndarray:
    """Returns at how many examples the baseline is as good as `improved` at each size.

    The baseline's curve is made monotone (its running maximum) and interpolated
    linearly between sizes.

    Args:
        sizes: n, increasing.
        baseline: Mean accuracy of the baseline at each.
        improved: Mean accuracy of the other method at each.

    Returns:
        Sizes, one for each n; nan where `improved` is beyond the baseline's curve.
    """
    curve = np.maximum.accumulate(np.asarray(baseline, np.float64))
    result = np.full(len(sizes), np.nan)
    for index, value in enumerate(improved):
        if value > curve[-1]:
            continue
        after = int(np.argmax(curve >= value))
        if after == 0:
            result[index] = sizes[0]
            continue
        share = (value - curve[after - 1]) / (curve[after] - curve[after - 1])
        result[index] = sizes[after - 1] + share * (sizes[after] - sizes[after - 1])
    return result


def best_ratio(ratios: Sequence[float], accuracies: Sequence[float]) -> float:
    """Returns where a parabola through the best mean and its neighbours peaks.

    A grid of ratios and few runs leave the best of them to chance; neighbours help.
    """
    values = np.asarray(accuracies, np.float64)
    top = int(values.argmax())
    if top in (0, len(values) - 1):
        return float(ratios[top])
    around = slice(top - 1, top + 2)
    a, b, _ = np.polyfit(ratios[around], values[around], 2)
    return float(-b / (2 * a)) if a < 0 else float(ratios[top])


def fit_line(sizes: Sequence[int], ratios: Sequence[float]) -> tuple[float, float]:
    """Returns slope and intercept of the least-squares line through best ratios."""
    slope, intercept = np.polyfit(sizes, ratios, 1)
    return float(slope), float(intercept)
