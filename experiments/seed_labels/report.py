"""Tables and figures of what seeds label."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import save, table
from experiments.kit.seed_list import SETS
from rlm_tf.labelling import best_deletion_ratio, seed_deletion_rate

Row = Mapping[str, Any]
# Of which the thesis' numbers are.
_VIEW = "subject+body"
# The authors' log of a run on 20News-Fine: labelled documents of each class.
AUTHORS_LOG = {
    "alt.atheism": 374,
    "comp.graphics": 603,
    "comp.os.ms-windows.misc": 1285,
    "comp.sys.ibm.pc.hardware": 724,
    "comp.sys.mac.hardware": 626,
    "comp.windows.x": 521,
    "rec.autos": 594,
    "rec.motorcycles": 705,
    "rec.sport.baseball": 361,
    "rec.sport.hockey": 474,
    "sci.crypt": 1072,
    "sci.electronics": 466,
    "sci.med": 124,
    "sci.space": 660,
    "soc.religion.christian": 770,
    "talk.politics.guns": 525,
    "talk.politics.mideast": 571,
}


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Draws the figures of what there is, and returns the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    if rows:
        _draw_best(folder / "best.png")
        _draw_rates(rows, folder / "rates.png")
    return "\n\n".join(tables(rows).values())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables of what there is, by name."""
    if not rows:
        return {}
    found = {
        "statistics": _statistics(rows),
        "seeds": _seeds(rows),
        "deletion": _deletion(rows),
        "left_out": _left_out(rows),
    }
    own = [row for row in rows if row["view"] == _VIEW]
    fine = [row for row in own if row["set"] == "20news-fine"]
    if fine:
        found["fine"] = _fine(fine[0])
    return found


def _statistics(rows: Sequence[Row]) -> str:
    """Returns Table 3.1."""
    lines = []
    # Beside the last set of each of the thesis'.
    known = [row for row in rows if row["set"] in SETS and row["view"] == _VIEW]
    beside = {SETS[row["set"]].title: row["name"] for row in known}
    for row in rows:
        for rule, own in row["rules"].items():
            lines.append(
                (
                    row["set"],
                    row["view"] if row["set"].startswith("20news") else "",
                    rule,
                    f"{own['documents']:,}",
                    own["classes"],
                    f"{own['labelled']:,}",
                    f"{100 * own['labelled'] / own['documents']:.2f}",
                    f"{100 * own['noise']:.2f}",
                    f"{own['tied']:,}",
                    _spread(own["length"]),
                    _spread(own["indicative"]),
                )
            )
        if row["name"] in beside.values():
            documents, classes, labelled, noise, length, words = SETS[
                row["set"]
            ].published
            lines.append(
                (
                    row["set"],
                    "",
                    "the thesis",
                    f"{documents:,}",
                    classes,
                    f"{labelled:,}",
                    f"{100 * labelled / documents:.2f}",
                    f"{noise:.2f}",
                    "",
                    length,
                    words,
                )
            )
    titles = (
        *("documents of", "text", "rule, ties", "documents", "classes", "labelled"),
        *("%", "noise, %", "ties", "length", "indicative words"),
    )
    return table(titles, lines, (0, 1, 2))


def _spread(pair: Sequence[float]) -> str:
    return f"{pair[0]:g} ({pair[1]:g})"


def _seeds(rows: Sequence[Row]) -> str:
    """Returns the least accurate seeds of each set."""
    lines = []
    for row in _first_views(rows):
        known = [own for own in row["seeds"] if own["accuracy"] is not None]
        for own in sorted(known, key=lambda own: own["accuracy"])[:5]:
            lines.append(
                (
                    row["set"],
                    own["text"],
                    own["class_name"],
                    f"{100 * own['accuracy']:.1f}",
                    f"{100 * own['coverage']:.2f}",
                    f"{100 * own['conflicts']:.2f}",
                    f"{own['labels_alone']:,}",
                )
            )
    titles = (
        *("documents of", "seed", "class", "right, %", "in documents, %"),
        *("beside a seed of another class, %", "labels alone"),
    )
    return table(titles, lines, (0, 1, 2))


def _deletion(rows: Sequence[Row]) -> str:
    """Returns the best ratios, and rates at them."""
    lines = []
    for row in _first_views(rows):
        own = row["deletion"]
        agreement = row["agreement"]
        noise = row["rules"]["words, abstain"]["noise"]
        met = agreement["accuracy"]
        lines.append(
            (
                row["set"],
                f"{own['indicative']:g}",
                f"{own['best']:.4f}",
                f"{own['rates'][-1]:.4f}",
                f"{own['counted'][-1]:.4f}",
                f"{own['fixed']:.4f}" if "fixed" in own else "",
                _spread(own["seeds_of_a_document"]),
                f"{100 * (1 - noise):.1f}",
                f"{100 * met:.1f}" if met is not None and met == met else "",
                f"{agreement['documents']:,}",
            )
        )
    titles = (
        *("documents of", "indicative words", "best ratio p*", "r_SD at it"),
        *("r_SD over documents", "of a fixed number", "seeds of a document"),
        *("labels right, %", "by seeds that meet, %", "documents where they meet"),
    )
    return table(titles, lines)


def _left_out(rows: Sequence[Row]) -> str:
    """Returns how often a seed that was left out is suggested."""
    lines = [
        (
            row["set"],
            f"{len(row['left_out']['found'])} of {row['left_out']['looked_for']}",
            ", ".join(row["left_out"]["found"]),
        )
        for row in _first_views(rows)
    ]
    among = rows[0]["left_out"]["among"]
    titles = ("documents of", f"seeds found among {among} words", "which")
    return table(titles, lines, (0, 2))


def _first_views(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["view"] == _VIEW]


def _fine(row: Row) -> str:
    """Returns labelled documents of 20News-Fine beside the authors' log."""
    own = row["rules"]["published, first"]["class_counts"]
    lines = [
        (
            name,
            f"{count:,}",
            f"{AUTHORS_LOG[name]:,}",
            f"{100 * (count / AUTHORS_LOG[name] - 1):+.1f}",
        )
        for name, count in own.items()
        if name in AUTHORS_LOG
    ]
    titles = ("class", "labelled", "in the authors' log", "difference, %")
    return table(titles, lines)


# === Figures ===


def _draw_best(path: pathlib.Path) -> None:
    """Draws Figure 3.2: the best ratio by seeds and indicative words."""
    figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    words = np.unique(np.round(np.geomspace(2, 1000, 60)).astype(int))
    for seeds in (1, 2, 5, 10):
        best = [best_deletion_ratio(seeds, float(number)) for number in words]
        axes.plot(words, best, label=f"$n_s$ = {seeds}")
    axes.set_xscale("log")
    axes.set(xlabel="indicative words $n_c$", ylabel="best ratio $p^*$")
    axes.legend(frameon=False)
    save(figure, path)


def _draw_rates(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws Figure 3.3, top: how often the seeds go and something stays."""
    figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    ratios = np.linspace(0.01, 0.999, 300)
    for row in _first_views(rows):
        own = row["deletion"]
        rates = [seed_deletion_rate(p, 1, own["indicative"]) for p in ratios]
        (line,) = axes.plot(ratios, rates, label=row["set"])
        axes.plot(own["best"], own["rates"][-1], "o", color=line.get_color())
        axes.plot(own["ratios"], own["counted"], "x", color=line.get_color())
    axes.set(xlabel="deletion ratio p", ylabel="$r_{SD}$ (x: over documents)")
    axes.legend(frameon=False)
    save(figure, path)
