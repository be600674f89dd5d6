"""Tables and figures of latent-variable models: fit against use of the latents."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt

from experiments.kit.drawing import save, table, with_deviation
from rlm_tf.evaluation import pareto_frontier

Row = dict[str, Any]
# What a row must have to be reported.
NEEDS = ("name", "config.seed", "config.corpus", "evaluation.train", "step_ms")


def points_table(rows: Sequence[Row]) -> str:
    """Returns one line a run: what was varied, fit and use of latents.

    Of sentences that is a token of the validation text, of symbols a symbol.
    """
    of_text = any(row["config"]["corpus"] for row in rows)
    lines = []
    for row in rows:
        found, config = measured(row), row["config"]
        line = [
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
        if of_text:
            line.insert(4, f"{math.exp(min(found['nll'], 709.0)):.1f}")
        lines.append(line)
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
    if of_text:
        titles[3:4] = ["NLL of a token, valid", "perplexity"]
    return table(titles, lines)


def seeds_table(rows: Sequence[Row]) -> str:
    """Returns mean and standard deviation of the runs that differ in their seed only.

    Of sentences that is a token of the validation text, of symbols a symbol. Empty if
    there is one seed of everything.
    """
    groups: dict[str, list[Row]] = {}
    for row in rows:
        name = row["name"].removesuffix(f"-seed{row['config']['seed']}")
        groups.setdefault(name, []).append(row)
    lines = []
    for name, members in groups.items():
        if len(members) < 2:
            continue
        found = [measured(row) for row in members]
        cells = (
            with_deviation([each[key] for each in found], 3)
            for key in ("nll", "usage", "representational_kl")
        )
        lines.append([name, len(members), *cells])
    titles = ["run", "seeds", "NLL", "usage", "KL(q, p)"]
    return table(titles, lines) if lines else ""


def measured(row: Row) -> dict[str, Any]:
    """Returns what a run is judged by: a token of validation text, or a symbol."""
    if row["config"]["corpus"]:
        return row["evaluation"]["valid"]["per_token"]
    return row["evaluation"]["train"]


def pareto_figure(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws the points of every line, and its Pareto frontier."""
    figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
    for number, (name, members) in enumerate(lines_of(rows).items()):
        points = frontier_of([measured(row) for row in members])
        colour = f"C{number % 10}"
        axes.plot(
            [usage for usage, _ in points],
            [nll for _, nll in points],
            marker="o",
            mfc=colour if "renyi" in name else "none",
            color=colour,
            label=name,
        )
    of = "a token of validation text" if rows[0]["config"]["corpus"] else "a symbol"
    axes.set(xlabel=f"latent usage, nats {of}", ylabel=f"NLL, nats {of}")
    save(figure, path)


def lines_of(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Returns the rows of every line."""
    lines: dict[str, list[Row]] = {}
    for row in rows:
        lines.setdefault(line_of(row), []).append(row)
    return lines


def frontier_of(found: Sequence[dict[str, Any]]) -> list[tuple[float, float]]:
    """Returns usage and NLL of the evaluations on the Pareto frontier, nats."""
    usage, nll = ([each[key] for each in found] for key in ("usage", "nll"))
    return [(usage[i], nll[i]) for i in pareto_frontier(nll, usage)]


def line_of(row: Row) -> str:
    """Returns the line that a run is a point of: estimator, samples, objective.

    Two numbers of samples that are grouped by terms are said to be.
    """
    config = row["config"]
    if config["latents"] == "quantised":
        return "VQ-VAE"
    # The gradient of IWAE as it was published.
    estimator = config["estimator"].replace("reparameterised", "iwae")
    start = f"{estimator} {config['num_samples']}"
    if config["divergence_samples"] in (0, config["num_samples"]):
        return f"{start} {config['objective']}"
    name = f"{start}/{config['divergence_samples']} {config['objective']}"
    return name if config["grouping"] == "difference" else f"{name}, terms"
