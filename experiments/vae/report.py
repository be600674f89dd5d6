"""Tables and figures of latent-variable models: fit against use of the latents."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt

from experiments.drawing import save, table
from rlm_tf.evaluation import pareto_frontier

Row = dict[str, Any]


def points_table(rows: Sequence[Row], text: str = "train") -> str:
    """Returns one line a run: what was varied, fit and use of latents."""
    lines = []
    for row in rows:
        found, config = row["evaluation"][text], row["config"]
        lines.append(
            [
                row["name"],
                f"{config['lambda_']:g}",
                f"{config['alpha']:g}",
                f"{found['nll']:.3f}",
                f"{found['usage']:.3f}",
                f"{found['representational_kl']:.3f}",
                found["active_units"],
                f"{found['effective_samples']:.1f}",
                f"{row['step_ms']:.1f}",
            ]
        )
    titles = [
        "run",
        "lambda",
        "alpha",
        "NLL",
        "usage",
        "KL(q, p)",
        "active",
        "effective samples",
        "ms/step",
    ]
    return table(titles, lines)


def pareto_figure(rows: Sequence[Row], path: pathlib.Path, text: str = "train") -> None:
    """Draws the points of every line, and its Pareto frontier."""
    lines: dict[str, list[Row]] = {}
    for row in rows:
        lines.setdefault(line_of(row), []).append(row)
    figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
    for number, (name, members) in enumerate(lines.items()):
        costs = [row["evaluation"][text]["nll"] for row in members]
        gains = [row["evaluation"][text]["usage"] for row in members]
        kept = pareto_frontier(costs, gains)
        colour = f"C{number % 10}"
        filled = name.endswith("renyi")
        axes.plot(
            [gains[i] for i in kept],
            [costs[i] for i in kept],
            marker="o",
            mfc=colour if filled else "none",
            color=colour,
            label=name,
        )
    axes.set(xlabel="latent usage, nats", ylabel="NLL, nats")
    save(figure, path)


def line_of(row: Row) -> str:
    """Returns the line that a run is a point of: estimator, samples, objective."""
    config = row["config"]
    if config["latents"] == "quantised":
        return "VQ-VAE"
    counts = str(config["num_samples"])
    if config["divergence_samples"] not in (0, config["num_samples"]):
        counts += f"/{config['divergence_samples']}"
    return f"{config['estimator']} {counts} {config['objective']}"
