"""Signal and noise of gradient estimates against the number of samples."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import tensorflow as tf

from experiments.kit.drawing import save, table
from experiments.kit.run_list import Run
from experiments.mi_vae import training
from experiments.mi_vae.studies import RENYI_ALPHA
from rlm_tf.data import UniformSymbols
from rlm_tf.evaluation import gradient_signal
from rlm_tf.models import MonteCarloVAE

Row = dict[str, Any]

_SAMPLES = (1, 2, 4, 8, 16, 32, 64)
_ESTIMATORS = {
    "normal": ("reparameterised", "stl", "dreg"),
    "categorical": ("reinforce", "vimco"),
}
_OBJECTIVES: dict[str, dict[str, Any]] = {
    "iwae": {"objective": "iwae"},
    "kl": {"objective": "kl", "lambda_": 0.2},
    "renyi": {"objective": "renyi", "lambda_": 0.2, "alpha": RENYI_ALPHA},
}
# The parameters that are looked at, and their lines.
_GROUPS = {"proposal": "-", "model": ":"}
_BATCH = 64
_REPEATS = 100


def with_measurement(run: Run) -> Run:
    """Returns the run with what is measured among what identifies it."""
    own = {"batch": _BATCH, "repeats": _REPEATS, "samples": list(_SAMPLES)}
    return run._replace(settings={**run.settings, "measurement": own})


def train_and_measure(
    prepared: training.Prepared, folder: pathlib.Path, checkpoint_seconds: float = 120.0
) -> Row:
    """Trains a model; its row has the signal of every estimator, K and objective."""
    row = training.train(prepared, folder, checkpoint_seconds)
    config, model = prepared.config, prepared.model
    assert isinstance(model, MonteCarloVAE)
    symbols = UniformSymbols(config.num_symbols, _BATCH, 1, config.seed)
    (batch,) = symbols.dataset(0).as_numpy_iterator()
    found = []
    for name, objective in _OBJECTIVES.items():
        for estimator in _ESTIMATORS[config.latents]:
            for samples in _SAMPLES:
                if estimator == "vimco" and samples == 1:
                    continue
                signals = _measure(model, batch, estimator, samples, objective)
                found.append(
                    {"objective": name, "estimator": estimator, "samples": samples}
                    | {group: s._asdict() for group, s in signals.items()}
                )
            print(f"{folder.name}: {name}, {estimator}", flush=True)
    command = f"--study=signal --only={folder.name} --seeds={config.seed}"
    return {
        **row,
        "command": f"python -m experiments.mi_vae {command}",
        "signal": found,
    }


def _measure(
    model: MonteCarloVAE,
    batch: Any,
    estimator: str,
    samples: int,
    objective: dict[str, Any],
) -> dict[str, Any]:
    other = MonteCarloVAE(
        model.encoder,
        model.latents,
        model.decoder,
        estimator=estimator,
        num_samples=samples,
        seed=samples,
        **objective,
    )
    return gradient_signal(other, tf.constant(batch), _REPEATS)


def signal_table(rows: Sequence[Row]) -> str:
    """Returns the ratios of signal to noise, proposal / model, a column for each K.

    The last column has the largest standard error of the line.
    """
    lines: dict[tuple[str, str, str], dict[int, Row]] = {}
    for row in rows:
        for point in row["signal"]:
            key = (row["name"], point["objective"], point["estimator"])
            lines.setdefault(key, {})[point["samples"]] = point
    titles = ["trained", "objective", "estimator", *(f"K={k}" for k in _SAMPLES)]
    return table(
        [*titles, "error up to"],
        [
            [
                *key,
                *(_pair("ratio", [points[k]] if k in points else []) for k in _SAMPLES),
                _pair("ratio_error", list(points.values())),
            ]
            for key, points in lines.items()
        ],
        left=(0, 1, 2),
    )


def _pair(field: str, points: list[Row]) -> str:
    """Returns the largest value of points, proposal / model."""
    if not points:
        return ""
    groups = ([point[group][field] for point in points] for group in _GROUPS)
    return " / ".join(f"{max(values):.2f}" for values in groups)


def signal_figure(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws the ratios against K: a column an objective, a row a model.

    Bars are standard errors.
    """
    figure, grid = plt.subplots(
        len(rows),
        len(_OBJECTIVES),
        figsize=(4 * len(_OBJECTIVES) + 2, 3.2 * len(rows)),
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    for across, row in zip(grid, rows, strict=True):
        for axes, objective in zip(across, _OBJECTIVES, strict=True):
            points = [p for p in row["signal"] if p["objective"] == objective]
            for number, estimator in enumerate(_ESTIMATORS[row["config"]["latents"]]):
                own = [p for p in points if p["estimator"] == estimator]
                for group, style in _GROUPS.items():
                    axes.errorbar(
                        [p["samples"] for p in own],
                        # A signal that the noise hides has no place on this axis.
                        [p[group]["ratio"] or math.nan for p in own],
                        [p[group]["ratio_error"] for p in own],
                        linestyle=style,
                        marker=".",
                        color=f"C{number}",
                        # One legend a row: none of its panels has room.
                        label=f"{estimator}, {group}" if axes is across[-1] else None,
                    )
            axes.set(
                title=f"{row['name']}: {objective}",
                xlabel="samples K",
                ylabel="signal / noise",
                xscale="log",
                yscale="log",
            )
        across[-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
    save(figure, path)
