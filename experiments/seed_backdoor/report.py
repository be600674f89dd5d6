"""Tables and figures of triggers and defences."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import distinct, save, table, with_deviation
from experiments.kit.paired import less
from experiments.kit.seed_procedure import told_difference
from experiments.seed_backdoor.config import DEFENCES

Row = Mapping[str, Any]
_BASE = "none"


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Draws the figure of what there is, and returns the table."""
    folder.mkdir(parents=True, exist_ok=True)
    if rows:
        _draw(rows, folder / "success.png")
    return "\n\n".join(tables(rows).values())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables of what there is, by name."""
    return {"defences": defences(rows)} if rows else {}


def groups(rows: Sequence[Row], name: str, share: float) -> dict[str, list[Row]]:
    """Returns the rows of each defence."""
    return {
        defence: own
        for defence in DEFENCES
        if (
            own := [
                row
                for row in rows
                if (row["set"], row["share"], row["defence"]) == (name, share, defence)
            ]
        )
    }


def _less(
    every: Mapping[str, Sequence[Row]], own: Sequence[Row], field: str, bits: str
) -> str:
    """Returns how far a defence is above none: over seeds and documents.

    Rows from before documents were kept are compared over seeds alone, which is no
    claim: nothing is in bold.
    """
    base = every.get(_BASE)
    if own is base:
        return ""
    if all(bits in row for row in (*own, *(base or ()))):
        return told_difference(own, base, bits)
    return less(_BASE, every, own, field, digits=1).replace("**", "")


def defences(rows: Sequence[Row]) -> str:
    """Returns what each defence costs and saves."""
    lines = []
    for name in distinct(row["set"] for row in rows):
        for share in sorted({row["share"] for row in rows if row["set"] == name}):
            every = groups(rows, name, share)
            for defence, own in every.items():
                lines.append(
                    (
                        name,
                        f"{100 * share:g}",
                        defence,
                        len(own),
                        with_deviation([row["clean"] for row in own], 1),
                        _less(every, own, "clean", "clean_right"),
                        with_deviation([row["success"] for row in own], 1),
                        _less(every, own, "success", "attacked"),
                        with_deviation([row["target_anyway"] for row in own], 1),
                        with_deviation([row["auroc"] for row in own], 3),
                    )
                )
    titles = (
        *("documents of", "poisoned, %", "defence", "seeds", "clean accuracy, %"),
        *(f"less `{_BASE}`, ± 2 standard errors", "attack succeeds, %"),
        *(f"less `{_BASE}`", "target without trigger, %", "AUROC for the poisoned"),
    )
    return table(titles, lines, (0, 2))


def _draw(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws how often the attack succeeds."""
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    name = rows[0]["set"]
    shares = sorted({row["share"] for row in rows if row["set"] == name})
    for defence in DEFENCES:
        means = [
            np.mean([row["success"] for row in groups(rows, name, share)[defence]])
            if defence in groups(rows, name, share)
            else np.nan
            for share in shares
        ]
        axes.plot([100 * share for share in shares], means, marker="o", label=defence)
    axes.set(xlabel="poisoned, %", ylabel="attack succeeds, %")
    axes.set_title(name, fontsize=10)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(figure, path)
