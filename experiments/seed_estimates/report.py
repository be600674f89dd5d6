"""Tables and figures of estimates."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import distinct, save, table, with_deviation
from experiments.kit.paired import paired_difference

Row = Mapping[str, Any]
_PROBES = ("plain", "seeds", "random")


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Draws the figures of what there is, and returns the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in distinct(row["set"] for row in of_stage(rows, "worth")):
        own = [r for r in of_stage(rows, "worth") if r["set"] == name]
        _draw(own, folder / f"worth-{name}.png")
    return "\n\n".join(tables(rows).values())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables of what there is, by name."""
    makers = {"without": without, "intervals": intervals, "worth": worth}
    return {
        name: make(of_stage(rows, name))
        for name, make in makers.items()
        if of_stage(rows, name)
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
        lines.append((name, "seeds alone", "", *_score([r["seeds"] for r in own]), ""))
        for place, first in enumerate(own[0]["cells"]):
            for kind in [key for key in first if key != "number"]:
                values = [row["cells"][place].get(kind) for row in own]
                pairs = [
                    (value, row["seeds"])
                    for value, row in zip(values, own, strict=True)
                    if value is not None
                ]
                lines.append(
                    (
                        name,
                        kind,
                        first["number"],
                        *_score([value for value in values if value is not None]),
                        paired_difference(pairs, 1),
                    )
                )
    titles = (
        *("documents of", "learnt from", "true labels", "accuracy, held out, %"),
        *("seeds", "less seeds alone, ± 2 standard errors"),
    )
    return table(titles, lines, (0, 1))


def _score(values: Sequence[float]) -> tuple[str, int]:
    return with_deviation(values, 1), len(values)


def _draw(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws how many labels seeds are worth."""
    figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    numbers = [cell["number"] for cell in rows[0]["cells"]]
    axes.axhline(np.mean([r["seeds"] for r in rows]), color="#777777", label="seeds")
    for kind in [key for key in rows[0]["cells"][-1] if key != "number"]:
        means = [
            np.mean([row["cells"][i].get(kind, np.nan) for row in rows])
            for i in range(len(numbers))
        ]
        axes.plot(numbers, means, marker="o", label=kind)
    axes.set_xscale("log")
    axes.set(xlabel="true labels", ylabel="accuracy, held out, %")
    axes.set_title(rows[0]["set"], fontsize=10)
    axes.legend(frameon=False, fontsize=8)
    save(figure, path)
