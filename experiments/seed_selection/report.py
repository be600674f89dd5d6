"""Tables and figures of probes."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import distinct, save, table, with_deviation
from experiments.kit.paired import less
from experiments.kit.seed_procedure import told_difference, told_pairs, unpacked
from experiments.seed_selection.config import PROBES
from experiments.seed_selection.running import FRACTIONS

Row = Mapping[str, Any]
_BASE = "vanilla"
_SHOWN = (0.2, 0.5, 0.8, 1.0)
_DRAWN = ("vanilla", "random-flip", "seed-deletion", "random-deletion")


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Draws the figures of what there is, and returns the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in distinct(row["set"] for row in rows):
        _draw([r for r in rows if r["set"] == name], folder / f"noise-{name}.png")
    return "\n\n".join(tables(rows).values())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables of what there is, by name."""
    return {"probes": probes(rows), "noise": noise(rows)} if rows else {}


def groups(rows: Sequence[Row], name: str) -> dict[str, list[Row]]:
    """Returns the rows of each probe on a set of documents."""
    return {
        probe: own
        for probe in PROBES
        if (own := [r for r in rows if r["set"] == name and r["probe"] == probe])
    }


def probes(rows: Sequence[Row]) -> str:
    """Returns how well probes tell wrong labels, and what comes of their half."""
    lines = []
    for name in distinct(row["set"] for row in rows):
        every = groups(rows, name)
        for probe, own in every.items():
            lines.append(
                (
                    name,
                    probe,
                    len(own),
                    with_deviation([100 * half(row) for row in own]),
                    "" if probe == _BASE else noise_difference(own, every.get(_BASE)),
                    with_deviation([row["auroc"] for row in own], 3),
                    less(_BASE, every, own, "auroc", digits=3),
                    with_deviation([row["half"]["micro"] for row in own], 1),
                    "" if probe == _BASE else told_difference(own, every.get(_BASE)),
                    with_deviation([100 * row["follows"] for row in own], 1),
                    f"{100 * np.mean([row['follows_anyway'] for row in own]):.1f}",
                    ""
                    if probe == _BASE
                    else told_difference(own, every.get(_BASE), "followed"),
                )
            )
    titles = (
        *("documents of", "probe", "seeds", "noise in its half, %"),
        f"less `{_BASE}`, ± 2 standard errors",
        *("AUROC of its confidence", f"less `{_BASE}`", "micro F1 of its half"),
        *(f"less `{_BASE}`", "of the class of a seed that is put in, %"),
        *("of a word of its own put in, %", f"the former, less `{_BASE}`"),
    )
    return table(titles, lines, (0, 1))


def half(row: Row) -> float:
    """Returns the noise in the half that a probe is surest of."""
    return float(row["noise"][FRACTIONS.index(0.5)])


def noise_difference(own: Sequence[Row], base: Sequence[Row] | None) -> str:
    """Returns noise in a probe's half less that in another's, over documents, too.

    A document counts by whether it is wrong and taken, which over the number taken is
    the noise: halves of a split are of one size but for rounding.
    """

    def parts(rows: Sequence[Row]) -> list[Row]:
        found: list[Row] = []
        for row in rows:
            wrong, chosen = unpacked(row["wrong"]), unpacked(row["chosen"])
            bad = (wrong & chosen) * (len(wrong) / chosen.sum())
            found.append({"seed": row["seed"], "bad": bad})
        return found

    known = {row["seed"]: row["bad"] for row in parts(base or ())}
    pairs = [
        (row["bad"], known[row["seed"]]) for row in parts(own) if row["seed"] in known
    ]
    return told_pairs(pairs)


def noise(rows: Sequence[Row]) -> str:
    """Returns the noise in what probes are surest of, by its share."""
    lines = []
    for name in distinct(row["set"] for row in rows):
        for probe, own in groups(rows, name).items():
            means = np.mean([row["noise"] for row in own], axis=0)
            lines.append(
                (
                    name,
                    probe,
                    *(f"{100 * means[FRACTIONS.index(share)]:.1f}" for share in _SHOWN),
                )
            )
    titles = ("documents of", "probe", *(f"{100 * share:.0f} %" for share in _SHOWN))
    return table(titles, lines, (0, 1))


def _draw(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws Figure 3.1."""
    figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    for probe, own in groups(rows, rows[0]["set"]).items():
        if probe in _DRAWN:
            means = 100 * np.mean([row["noise"] for row in own], axis=0)
            axes.plot(FRACTIONS, means, marker=".", label=probe)
    axes.set(xlabel="share that is selected", ylabel="noise in it, %")
    axes.set_title(rows[0]["set"], fontsize=10)
    axes.legend(frameon=False)
    save(figure, path)
