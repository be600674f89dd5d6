"""Tables and figures of the information of real text."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import distinct, save, table
from experiments.kit.paired import LEAST_PAIRS
from experiments.mi_text.config import FAR_SEEDS, OTHER_SEEDS, REPEATED
from rlm_tf.evaluation.information.segment_information import estimate

Numbers = Mapping[str, Any]
# Cao and Xu (2019), section 4.2: critic and length of text are not said.
PUBLISHED = {"ptb": "1.18 ± 0.08", "wikitext-2": "2.14 ± 0.07"}


def report(parts: Mapping[str, Numbers], folder: pathlib.Path) -> str:
    """Draws the curves of the parts there are, and returns the tables."""
    means = with_seeds(parts)
    if "gaps" in means:
        draw(
            means["gaps"]["rows"],
            folder / "mi_text_gaps.png",
            "gap",
            "tokens between two segments",
        )
    if "lengths" in means:
        draw(
            means["lengths"]["rows"],
            folder / "mi_text_lengths.png",
            "tokens",
            "tokens of the text",
        )
    return "\n\n".join(tables(parts).values()) + "\n"


def tables(parts: Mapping[str, Numbers]) -> dict[str, str]:
    """Returns the tables of the parts there are, by name."""
    parts = with_seeds(parts)
    makers = {
        "real": real_table,
        "gaps": lambda rows: wide_table(rows, "gap"),
        "critics": lambda rows: wide_table(rows, "critic"),
        "far": lambda rows: wide_table(rows, "critic"),
        "lengths": lambda rows: wide_table(rows, "tokens"),
        "controls": lambda rows: wide_table(rows, "shuffled_order"),
    }
    found = {
        name: maker(parts[name]["rows"])
        for name, maker in makers.items()
        if name in parts
    }
    if {"real", "steps"} <= {*parts}:
        found["steps"] = steps_table(parts["steps"]["rows"], parts["real"]["rows"])
    return found


def with_seeds(parts: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Returns the parts, each fold the mean of its seeds where there are several.

    The error of folds that are means of seeds holds both: what texts and blocks make,
    and what first weights of critics make.
    """
    again = (*OTHER_SEEDS, *FAR_SEEDS)
    others = [row for name in again if name in parts for row in parts[name]["rows"]]
    found = dict(parts)
    for part in (*REPEATED, "far"):
        if part in parts:
            own = [row for row in others if row["part"] == part]
            rows = [_mean_of_seeds(row, own) for row in parts[part]["rows"]]
            found[part] = {**parts[part], "rows": rows}
    return found


def _mean_of_seeds(row: Numbers, others: Sequence[Numbers]) -> Numbers:
    """Returns a row with means over the rows of other seeds that estimate the same."""
    what = ("text", "gap", "tokens", "shuffled_order", "critic")
    own = [row, *(r for r in others if all(r.get(w) == row.get(w) for w in what))]
    if len(own) == 1:
        return row
    means = {
        name: estimate(np.mean([r[name]["folds"] for r in own], axis=0))._asdict()
        for name in ("mine", "nwj")
    }
    return {**row, **means, "seeds": [r["mine"]["mean"] for r in own]}


def with_error(found: Numbers) -> str:
    """Returns an estimate and its standard error."""
    return f"{found['mean']:.3f} ± {found['standard_error']:.3f}"


def real_table(rows: Sequence[Numbers]) -> str:
    """Returns the table of whole corpora."""
    lines = [
        (
            row["text"],
            f"{row['tokens']:,}",
            with_error(row["mine"]),
            f"{row['mine']['deviation']:.2f}",
            f"{row['nwj']['mean']:.3f}",
            f"{row['shuffled']['mean']:.3f}",
            f"{row['ceiling']:.1f}",
            PUBLISHED.get(row["text"], ""),
        )
        for row in rows
    ]
    titles = (
        "text",
        "tokens",
        "MINE, nats",
        "deviation of folds",
        "NWJ",
        "half a block apart",
        "ceiling",
        "the paper",
    )
    return table(titles, lines)


def steps_table(rows: Sequence[Numbers], real: Sequence[Numbers]) -> str:
    """Returns what longer training adds on the same folds of whole corpora."""
    lines = []
    for base in real:
        own = [row for row in rows if row["text"] == base["text"]]
        if not own:
            continue
        computed = min(len(row["mine"]["folds"]) for row in own)
        first = base["mine"]["folds"][:computed]
        # As `segment_information` has it by default.
        lines.append(
            (base["text"], "4,000", f"{base['dropout']:g}", *_of(first), "", "")
        )
        for row in own:
            folds = row["mine"]["folds"][:computed]
            error = np.std(np.subtract(folds, first), ddof=1) / math.sqrt(computed)
            less = np.mean(folds) - np.mean(first)
            said = f"{less:+.3f} ± {2 * error:.3f}"
            lines.append(
                (
                    row["text"],
                    f"{row['most_steps']:,}",
                    f"{row['dropout']:g}",
                    *_of(folds),
                    said,
                    f"{row['capped']} of {computed}",
                )
            )
    titles = (
        "text",
        "steps at most",
        "dropped",
        "folds",
        "MINE, nats",
        "less 4,000 steps, ± 2 standard errors",
        "folds that end there",
    )
    return table(titles, lines)


def _of(folds: Sequence[float]) -> tuple[int, str]:
    """Returns how many folds there are, and their mean and standard error."""
    return len(folds), with_error(estimate(folds)._asdict())


def wide_table(rows: Sequence[Numbers], what: str) -> str:
    """Returns a table with a line a value of `what`, two columns a text: MINE and NWJ.

    How far texts differ is of MINE, in bold where three seeds tell them apart.
    """
    texts = distinct(row["text"] for row in rows)
    lines = []
    for value in distinct(row[what] for row in rows):
        own = {row["text"]: row for row in rows if row[what] == value}
        cells = [
            with_error(own[text][name]) if text in own else ""
            for name in ("mine", "nwj")
            for text in texts
        ]
        shown = f"{value:,}" if isinstance(value, int) else value
        lines.append((shown, *cells, *_more(texts, own)))
    more = (
        [
            f"{texts[1]} less {texts[0]}, MINE, ± 2 standard errors",
            "deviation of that over seeds",
        ]
        if texts[1:]
        else []
    )
    names = [*texts, *(f"{text}, NWJ" for text in texts)]
    return table((what.replace("_", " "), *names, *more), lines)


def _more(texts: Sequence[str], own: Mapping[str, Numbers]) -> list[str]:
    """Returns how far the second text is above the first, if there are two."""
    if len(texts) < 2:
        return []
    if not set(texts[:2]) <= set(own):
        return ["", ""]
    first, second = (own[text]["mine"] for text in texts[:2])
    less = second["mean"] - first["mean"]
    error = 2 * math.hypot(first["standard_error"], second["standard_error"])
    said = f"{less:+.3f} ± {error:.3f}"
    by_seed = np.subtract(*(own[text].get("seeds", [0]) for text in texts[1::-1]))
    told = len(by_seed) >= LEAST_PAIRS and abs(less) > error
    deviation = f"{np.std(by_seed, ddof=1):.3f}" if len(by_seed) > 1 else "one seed"
    return [f"**{said}**" if told else said, deviation]


def draw(rows: Sequence[Numbers], path: pathlib.Path, what: str, label: str) -> None:
    """Draws estimates with standard errors against a gap or a length."""
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for text in distinct(row["text"] for row in rows):
        own = sorted((r for r in rows if r["text"] == text), key=lambda r: r[what])
        axes.errorbar(
            [row[what] for row in own],
            [row["mine"]["mean"] for row in own],
            yerr=[row["mine"]["standard_error"] for row in own],
            marker="o",
            capsize=3,
            label=text,
        )
    axes.axhline(0, color="#dddddd", linewidth=1, zorder=0)
    places = distinct(sorted(row[what] for row in rows))
    if what == "gap":
        axes.set_xscale("symlog", linthresh=10)
        axes.set_xlim(min(places) - 1, 1.3 * max(places))
    else:
        axes.set_xscale("log")
    axes.set_xticks(places, [f"{place:,}" for place in places])
    axes.minorticks_off()
    axes.set(xlabel=label, ylabel="mutual information (MINE), nats")
    axes.legend(frameon=False)
    save(figure, path)
