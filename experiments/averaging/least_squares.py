"""SGD with a constant rate on least squares (Propositions 3, 5, 6 and 7)."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.averaging.config import AveragingConfig
from rlm_tf.averaging import (
    PolyakAverage,
    ProportionalTailAverage,
    TailAverage,
    TwoTailedAverage,
    WeightAverage,
)

_NOISE = 1.0
# Curves have at most so many points.
_POINTS = 200


def compute(config: AveragingConfig) -> dict[str, Any]:
    """Returns excess losses, lengths and switches, means over problems.

    Features are normal with variances 1, 1/2, 1/3, ...; targets are linear in them,
    with unit noise. The loss is the expected squared error over two, in excess of the
    least: convex, so that Algorithm 1 must only go down at its switches.
    """
    steps, period = config.squares_steps, config.squares_period
    names = ("2TA", *_rivals(steps), "raw")
    evaluations = steps // period
    losses = {name: np.zeros([config.squares_runs, evaluations]) for name in names}
    lengths = np.zeros([config.squares_runs, evaluations])
    switches = np.zeros([config.squares_runs, evaluations], bool)
    monotone = 0
    for run in range(config.squares_runs):
        rng = np.random.default_rng([config.seed, run])
        found = _run(config, rng, losses, lengths, switches, run)
        monotone += found
    keep = np.unique(np.linspace(0, evaluations - 1, _POINTS).astype(int))
    return {
        "steps": ((keep + 1) * period).tolist(),
        "excess_loss": {
            name: _digits(values.mean(axis=0)[keep]) for name, values in losses.items()
        },
        "length": {
            "mean": _digits(lengths.mean(axis=0)[keep]),
            "least": _digits(lengths.min(axis=0)[keep]),
        },
        "runs": config.squares_runs,
        "monotone_runs": monotone,
        "switches_by_quarter": [
            float(part.sum(axis=1).mean()) for part in np.array_split(switches, 4, 1)
        ],
        "runs_with_switches_in_every_quarter": int(
            np.all(
                [part.any(axis=1) for part in np.array_split(switches, 4, 1)], axis=0
            ).sum()
        ),
    }


def _run(
    config: AveragingConfig,
    rng: np.random.Generator,
    losses: dict[str, np.ndarray],
    lengths: np.ndarray,
    switches: np.ndarray,
    run: int,
) -> bool:
    """Fills in one run; returns whether losses at switches only went down."""
    features, period = config.squares_features, config.squares_period
    variances = 1.0 / np.arange(1, features + 1)
    best = rng.normal(size=features)
    theta = np.zeros(features)
    averages = {
        "2TA": TwoTailedAverage(extended=False),
        **_rivals(config.squares_steps),
    }
    for average in averages.values():
        average.start([theta])

    def excess(weights: Any) -> float:
        return float(0.5 * np.sum(variances * (weights[0] - best) ** 2))

    at_switches = []
    for t in range(1, config.squares_steps + 1):
        x = rng.normal(size=features) * np.sqrt(variances)
        error = x @ (theta - best) - _NOISE * rng.normal()
        theta = theta - config.squares_rate * error * x
        for average in averages.values():
            average.update([theta])
        if t % period:
            continue
        index = t // period - 1
        losses["raw"][run, index] = excess([theta])
        for name, average in averages.items():
            result = average.evaluate(excess, [theta])
            losses[name][run, index] = result.loss
            if isinstance(average, TwoTailedAverage):
                lengths[run, index] = average.long_length
                switches[run, index] = average.event == "switch"
                if average.event == "switch":
                    at_switches.append(result.loss)
    return bool(np.all(np.diff(at_switches) <= 1e-12))


def _rivals(steps: int) -> dict[str, WeightAverage]:
    """Returns new averages to compare with, whose hyper-parameters are a guess."""
    return {
        **{
            f"TA, {start:g}": TailAverage(max(1, round(start * steps)))
            for start in (0.05, 0.1, 0.5)
        },
        **{f"proportional, {c:g}": ProportionalTailAverage(c) for c in (0.5, 0.9)},
        "Polyak": PolyakAverage(),
    }


def _digits(values: np.ndarray) -> list[float]:
    return [float(f"{value:.4g}") for value in values]
