"""Tables and figures of estimates."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import distinct, save, table, with_deviation
from experiments.kit.paired import paired_difference
from experiments.kit.seed_config import shown
from experiments.kit.seed_procedure import told_difference

Row = Mapping[str, Any]
_PROBES = ("plain", "seeds", "random")
_JOINTS = (
    "confident joint, plain",
    "confident joint, seeds deleted",
    "confident joint, words deleted at random",
)
# Of labels that are all of one class.
_LACKING = {"accuracy": np.nan}


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Draws the figures of what there is, and returns the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in distinct(row["set"] for row in of_stage(rows, "worth")):
        own = [r for r in of_stage(rows, "worth") if r["set"] == name]
        _draw(own, folder / f"worth-{name}.png")
    return "\n\n".join(tables(rows).values())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables of what there is, by name."""
    makers = {
        "without": ("without", without),
        "bias": ("without", bias),
        "intervals": ("intervals", intervals),
        "calibration": ("intervals", calibration),
        "worth": ("worth", worth),
        "crossings": ("worth", crossings),
    }
    return {
        name: make(of_stage(rows, stage))
        for name, (stage, make) in makers.items()
        if of_stage(rows, stage)
    }


def of_stage(rows: Sequence[Row], stage: str) -> list[Row]:
    """Returns the rows of a stage."""
    return [row for row in rows if row["stage"] == stage]


def without(rows: Sequence[Row]) -> str:
    """Returns estimates of the share of right labels beside the truth."""
    lines = []
    for name in distinct(row["set"] for row in rows):
        own = [row for row in rows if row["set"] == name]
        met = [row["meeting"]["accuracy"] for row in own]
        known = [value for value in met if value is not None and value == value]
        lines.append(
            (
                name,
                len(own),
                with_deviation([100 * row["truth"] for row in own], 1),
                *(
                    with_deviation([100 * row["estimates"][probe] for row in own], 1)
                    for probe in _PROBES
                ),
                *(
                    with_deviation(
                        [100 * row["estimates"][f"{probe}_agrees"] for row in own], 1
                    )
                    for probe in _PROBES
                ),
                with_deviation([100 * value for value in known], 1) if known else "",
                f"{np.mean([row['meeting']['documents'] for row in own]):,.0f}",
            )
        )
    titles = (
        *("documents of", "seeds", "labels right, %", "confident joint, plain"),
        *("seeds deleted", "words deleted at random", "agreement, plain"),
        *("seeds deleted", "at random", "seeds that meet", "documents of these"),
    )
    return table(titles, lines)


def bias(rows: Sequence[Row]) -> str:
    """Returns how much too kind estimates are: less the truth, seed by seed."""
    lines = []
    for name in distinct(row["set"] for row in rows):
        own = [row for row in rows if row["set"] == name]
        truth = [100 * row["truth"] for row in own]
        estimates = {
            title: [100 * row["estimates"][probe] for row in own]
            for probe, title in zip(_PROBES, _JOINTS, strict=True)
        }
        estimates["seeds that meet"] = [
            100 * (row["meeting"]["accuracy"] or np.nan) for row in own
        ]
        for title, values in estimates.items():
            pairs = [
                pair for pair in zip(values, truth, strict=True) if np.isfinite(pair[0])
            ]
            lines.append((shown(name), title, len(pairs), paired_difference(pairs, 1)))
    titles = (
        *("documents of", "estimate", "seeds"),
        "less labels right, points, ± 2 standard errors",
    )
    return table(titles, lines, (0, 1))


def intervals(rows: Sequence[Row]) -> str:
    """Returns coverage and width of intervals of a few labels."""
    lines = []
    for name in distinct(row["set"] for row in rows):
        own = [row for row in rows if row["set"] == name]
        kinds = distinct(
            (cell["accuracy"], cell["confidence"]) for cell in own[0]["intervals"]
        )
        for accuracy, kind in kinds:
            cells = [
                cell
                for row in own
                for cell in row["intervals"]
                if (cell["accuracy"], cell["confidence"]) == (accuracy, kind)
            ]
            width = np.mean([cell["width"] for cell in cells])
            simple = np.mean([cell["simple_width"] for cell in cells])
            lines.append(
                (
                    name,
                    f"{accuracy:g}",
                    kind,
                    f"{100 * np.mean([c['coverage'] for c in cells]):.1f}",
                    f"{100 * min(c['coverage'] for c in cells):.1f}",
                    f"{100 * np.mean([c['simple_coverage'] for c in cells]):.1f}",
                    f"{100 * width:.1f}",
                    f"{width / simple:.2f}",
                    f"{100 * np.mean([c['bias'] for c in cells]):+.2f}",
                )
            )
    titles = (
        *(
            "documents of",
            "accuracy",
            "confidence",
            "coverage, %",
            "least of the seeds",
        ),
        *("of simple samples", "width, points", "width over a simple sample's", "bias"),
    )
    return table(titles, lines, (0, 2))


def worth(rows: Sequence[Row]) -> str:
    """Returns accuracies of seeds, labels and both, held out."""
    lines = []
    for name in distinct(row["set"] for row in rows):
        own = [row for row in rows if row["set"] == name]
        seeds = [_cell(row, row["seeds"]) for row in own]
        lines.append((name, "seeds alone", "", *_score(seeds), ""))
        for place, first in enumerate(own[0]["cells"]):
            for kind in [key for key in first if key != "number"]:
                cells = [
                    _cell(row, row["cells"][place][kind])
                    for row in own
                    if kind in row["cells"][place]
                ]
                told = told_difference(cells, seeds)
                lines.append((name, kind, first["number"], *_score(cells), told))
    titles = (
        *("documents of", "learnt from", "true labels", "accuracy, held out, %"),
        *("seeds", "in the pool, first training, %", "after self-training, %"),
        "held out, less seeds alone, ± 2 standard errors",
    )
    return table(titles, lines, (0, 1))


def _cell(row: Row, found: Row) -> Row:
    return {"seed": row["seed"], **found}


def _score(cells: Sequence[Row]) -> tuple[str, int, str, str]:
    first, last = (
        f"{np.mean([cell[name] for cell in cells]):.1f}" if name in cells[0] else ""
        for name in ("first", "last")
    )
    return with_deviation([c["accuracy"] for c in cells], 1), len(cells), first, last


def crossing(rows: Sequence[Row], kind: str = "logistic regression") -> list[float]:
    """Returns of each seed how many true labels alone are as good as seeds alone.

    Between two numbers that were tried in a line of logarithms; below the least that,
    and above the most infinite.
    """
    found = []
    for row in rows:
        level, last = row["seeds"]["accuracy"], None
        value = math.inf
        for cell in row["cells"]:
            if kind not in cell:
                continue
            now = (math.log(cell["number"]), cell[kind]["accuracy"])
            if now[1] >= level:
                value = math.exp(now[0])
                if last is not None:
                    share = (level - last[1]) / (now[1] - last[1])
                    value = math.exp(last[0] + share * (now[0] - last[0]))
                break
            last = now
        found.append(value)
    return found


def crossings(rows: Sequence[Row]) -> str:
    """Returns how many labels seeds are worth: median, least and most of the seeds."""
    lines = []
    for name in distinct(row["set"] for row in rows):
        own = [row for row in rows if row["set"] == name]
        for kind in ("labels", "labels, deletion", "logistic regression"):
            numbers = sorted(crossing(own, kind))
            shown = (numbers[(len(numbers) - 1) // 2], numbers[0], numbers[-1])
            lines.append((name, kind, len(own), *(_number(value) for value in shown)))
    titles = (
        *("documents of", "learnt from labels alone by", "seeds"),
        *("labels as good as seeds, median", "least", "most"),
    )
    return table(titles, lines, (0, 1))


def _number(value: float) -> str:
    return "more than were tried" if math.isinf(value) else f"{value:,.0f}"


def calibration(rows: Sequence[Row]) -> str:
    """Returns accuracy, ECE and temperatures of classifiers of intervals."""
    lines = []
    for name in distinct(row["set"] for row in rows):
        own = [row for row in rows if row["set"] == name]
        temperatures = [
            cell["temperature"]
            for row in own
            for cell in row["intervals"]
            if cell["confidence"] == "as it is"
        ]
        lines.append(
            (
                name,
                len(own),
                with_deviation([100 * row["accuracy"] for row in own], 1),
                with_deviation([row["ece"] for row in own], 3),
                f"{min(temperatures):.2f} to {max(temperatures):.2f}",
            )
        )
    titles = (
        *("documents of", "seeds", "accuracy in the pool, %", "ECE"),
        "temperatures, by accuracy",
    )
    return table(titles, lines)


def _draw(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws how many labels seeds are worth."""
    figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    numbers = [cell["number"] for cell in rows[0]["cells"]]
    level = np.mean([row["seeds"]["accuracy"] for row in rows])
    axes.axhline(level, color="#777777", label="seeds")
    for kind in [key for key in rows[0]["cells"][-1] if key != "number"]:
        means = [
            np.mean([row["cells"][i].get(kind, _LACKING)["accuracy"] for row in rows])
            for i in range(len(numbers))
        ]
        axes.plot(numbers, means, marker="o", label=kind)
    axes.set_xscale("log")
    axes.set(xlabel="true labels", ylabel="accuracy, held out, %")
    axes.set_title(rows[0]["set"], fontsize=10)
    axes.legend(frameon=False, fontsize=8)
    save(figure, path)
