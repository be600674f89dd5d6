"""Tables and figures of BMI on a known source."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import distinct, save, table, with_deviation
from experiments.kit.paired import less

Row = Mapping[str, Any]
# What a row must have to be reported.
NEEDS = ("name", "arm", "sentences", "sentence_length", "seed")
_SHORT, _LONG, _MIDDLE = 7, 20, 3000
_COLOURS = {
    "none": "#4c4c4c",
    "none-patient": "#a0a0a0",
    "base": "#0072b2",
    "base-annealed": "#56b4e9",
    "base-last-annealed": "#009e73",
    "base-last-patient": "#9acd32",
    "full-annealed": "#d55e00",
    "random-full-last-annealed": "#8b5a2b",
    "full-last-annealed": "#cc79a7",
    "base-patient": "#6a3d9a",
}


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Draws the figures, and returns the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    draw(rows, folder / "bmi_source.png")
    return "\n\n".join(tables(rows).values())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables of what there is, by name."""
    short = [row for row in rows if row["sentence_length"] != _LONG]
    long = [row for row in rows if row["sentence_length"] == _LONG]
    found = {
        "sizes": loss_table(short, ("base-annealed",)),
        "phases": phase_table(rows),
        "coherence": coherence_table(short),
    }
    if long:
        found |= {
            "long": loss_table(
                long, ("none-patient", "base-patient", "base-last-patient")
            ),
            "long_coherence": coherence_table(long),
        }
    if any("topics_found" in row for row in long):
        found["topics"] = topics_table(long)
    return found


def groups(rows: Sequence[Row]) -> list[tuple[int, str, list[Row]]]:
    """Returns the rows of every size of text and arm, seeds in order."""
    found = []
    for size in sorted({row["sentences"] for row in rows}):
        for arm in distinct(row["arm"] for row in rows):
            own = [r for r in rows if r["sentences"] == size and r["arm"] == arm]
            if own:
                found.append((size, arm, sorted(own, key=lambda row: row["seed"])))
    return found


def excess(row: Row) -> float:
    """Returns the nats a token above what no model goes below."""
    return row["test_nll"] - row["floor"]


def _mean_of(rows: Sequence[Row], name: str, digits: int = 2) -> str:
    """Returns `mean ± deviation` of what rows have; nothing if they do not."""
    found = [row[name] for row in rows if name in row]
    return with_deviation(found, digits) if found else ""


def loss_table(rows: Sequence[Row], others: Sequence[str]) -> str:
    """Returns the table of losses above the floor, beside `none` and other arms."""
    by_size: dict[int, dict[str, list[Row]]] = {}
    for size, arm, own in groups([{**row, "excess": excess(row)} for row in rows]):
        by_size.setdefault(size, {})[arm] = own
    lines = []
    for size, arm, own in (
        (s, a, o) for s, arms in by_size.items() for a, o in arms.items()
    ):
        accuracies = [
            row["pair_accuracy"] for row in own if row.get("pair_accuracy") is not None
        ]
        lines.append(
            (
                f"{size:,}",
                arm,
                with_deviation([row["excess"] for row in own], 4),
                *(
                    less(base, by_size[size], own, "excess", digits=4)
                    for base in ("none", *others)
                ),
                _mean_of(own, "best_epoch", 0),
                with_deviation([row["seconds_to_best"] for row in own], 0),
                with_deviation(accuracies) if accuracies else "",
                len(own),
            )
        )
    titles = (
        "sentences",
        "arm",
        "test nats a token above the floor",
        "less `none`, ± 2 standard errors",
        *(f"less `{other}`" for other in others),
        "epochs to the best",
        "seconds",
        "pairs told apart",
        "seeds",
    )
    return table(titles, lines, (0, 1))


def topics_table(rows: Sequence[Row]) -> str:
    """Returns the table of what a linear model finds of topics in features."""
    lines = []
    for size, arm, own in groups([row for row in rows if "topics_found" in row]):
        found = [row["topics_found"] for row in own]
        shares = [
            with_deviation([100 * each[name] for each in found], 1)
            for name in ("greatest", "last", "guessed")
        ]
        lines.append((f"{size:,}", arm, len(own), *shares))
    titles = (
        "sentences",
        "arm",
        "seeds",
        "topics found by the greatest features, %",
        "by the last, %",
        "by none, %",
    )
    return table(titles, lines, (0, 1))


def phase_table(rows: Sequence[Row]) -> str:
    """Returns the table of what Phase II did to the validation loss."""
    lines = []
    for length in sorted({row["sentence_length"] for row in rows}):
        of_length = [row for row in rows if row["sentence_length"] == length]
        for size, arm, own in groups(of_length):
            gains, jumps, starts = [], [], []
            for row in own:
                if row.get("phase_two_from") is None:
                    continue
                # The first epoch of Phase II, counted from 0.
                start, curve = row["phase_two_from"] - 1, row["valid_curve"]
                gains.append(min(curve[start:]) - min(curve[:start]))
                raw = row["raw_curve"]
                jumps.append(raw[start] - raw[start - 1])
                starts.append(start + 1)
            if gains:
                lines.append(
                    (
                        f"{length} words, {size:,}",
                        arm,
                        with_deviation(starts, 0),
                        with_deviation(jumps, 4),
                        with_deviation(gains, 4),
                    )
                )
    titles = (
        "sentences",
        "arm",
        "Phase II from epoch",
        "its first epoch, validation without averages",
        "best average behind the switch less the best before",
    )
    return table(titles, lines, (0, 1))


def coherence_table(rows: Sequence[Row]) -> str:
    """Returns the table of what sentences of the models share."""
    lines, sides = [], ("lower", "upper")
    for size, arm, own in groups(rows):
        lines.append(
            (
                f"{size:,}",
                arm,
                with_deviation([row["marker_ratio"] for row in own]),
                with_deviation([row["elsewhere"] for row in own], 4),
                _mean_of(own, "counted"),
                *(_mean_of([r.get("sandwich", {}) for r in own], s) for s in sides),
            )
        )
    truth = [row["information"] for row in rows if "information" in row]
    counted = [row["counted_text"] for row in rows if "counted_text" in row]
    if truth:
        bounds = [f"{np.mean(truth):.2f}"] * 2
        lines.append(("", "the source", "1", "0", f"{np.mean(counted):.2f}", *bounds))
    titles = (
        "sentences",
        "arm",
        "perplexity at markers over the floor's",
        "nats elsewhere above the floor",
        "I by counting markers",
        "sandwich, lower",
        "upper",
    )
    return table(titles, lines, (0, 1))


def draw(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws validation losses against epochs, for each length of sentences."""
    lengths = sorted({row["sentence_length"] for row in rows})
    figure, panels = plt.subplots(
        1,
        len(lengths),
        figsize=(5.4 * len(lengths), 3.8),
        layout="constrained",
        squeeze=False,
    )
    for axes, length in zip(panels[0], lengths, strict=True):
        own = [r for r in rows if r["sentence_length"] == length]
        sizes = {row["sentences"] for row in own}
        size = _MIDDLE if _MIDDLE in sizes else max(sizes)
        for _, arm, group in groups([r for r in own if r["sentences"] == size]):
            if arm not in _COLOURS:
                continue
            for number, row in enumerate(group):
                axes.plot(
                    np.arange(1, row["epochs"] + 1),
                    row["valid_curve"],
                    color=_COLOURS[arm],
                    linewidth=1.2,
                    label=arm if number == 0 else None,
                )
        axes.axhline(own[0]["floor"], color="black", linestyle=":", label="floor")
        axes.set(
            title=f"{length} words a sentence, {size:,} sentences",
            xlabel="epochs",
            ylabel="validation, nats a token",
        )
        axes.legend(frameon=False, fontsize="small")
    save(figure, path)
