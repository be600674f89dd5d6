"""Tables and figures of probes."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import distinct, save, table, with_deviation
from experiments.kit.paired import less
from experiments.kit.seed_config import shown
from experiments.kit.seed_procedure import told_difference, told_pairs, unpacked
from experiments.seed_selection.config import PROBES
from experiments.seed_selection.running import FRACTIONS

Row = Mapping[str, Any]
_BASE = "vanilla"
# Figures 3.1 and 3.4, C.2 and C.3.
_DRAWN = {
    "words deleted": ("vanilla", "random-flip", "seed-deletion", "random-deletion"),
    "which words": ("seed-deletion", "random-deletion", "seeds-kept", "seeds-first"),
    "dropout": ("vanilla", "dropout", "mc-dropout-3", "mc-dropout-10"),
    "early stopping": ("early-1", "early-2", "vanilla", "late-8"),
}


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
                    shown(name),
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
            lines.append((shown(name), probe, *(f"{100 * x:.1f}" for x in means)))
    shares = (f"{100 * share:.0f} %" for share in FRACTIONS)
    titles = ("documents of", "probe", *shares)
    return table(titles, lines, (0, 1))


def _draw(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws Figures 3.1, 3.4, C.2 and C.3, in panels of one scale."""
    figure, axes = plt.subplots(
        2, 2, figsize=(10, 7), layout="constrained", sharex=True, sharey=True
    )
    every = groups(rows, rows[0]["set"])
    for panel, (title, chosen) in zip(axes.flat, _DRAWN.items(), strict=True):
        for probe in (each for each in chosen if each in every):
            means = 100 * np.mean([row["noise"] for row in every[probe]], axis=0)
            panel.plot(FRACTIONS, means, marker=".", label=probe)
        panel.set_title(f"{rows[0]['set']}: {title}", fontsize=10)
        panel.legend(frameon=False, fontsize=8)
    for panel in axes[1]:
        panel.set(xlabel="share that is selected")
    for panel in axes[:, 0]:
        panel.set(ylabel="noise in it, %")
    save(figure, path)
