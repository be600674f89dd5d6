"""Tables and figures of classifiers from seed words."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import distinct, save, table, with_deviation
from experiments.kit.seed_config import ARMS, shown
from experiments.kit.seed_procedure import told_difference
from experiments.kit.seed_published import TABLE_3_2
from experiments.seed_classifiers.config import PEERS

Row = Mapping[str, Any]
_BASE = "vanilla"
# Stages that take a setting in turn, and have a figure.
_DRAWN = (("fractions", "fraction"), ("ratios", "ratio"))
# What is asked: an arm, one beside which it differs in one thing, and in which.
PAIRS = (
    ("words", "vanilla", "labels of our rule"),
    ("random-deletion", "standard", "words deleted for the probe"),
    ("random-deletion", "seed-deletion", "which words"),
    ("ours-random", "words", "words deleted in training"),
    ("ours-random", "ours-seeds", "which words"),
    ("ours-random", "ours-selected", "all labels, not half"),
    ("ours-random", "random-deletion", "our way and the thesis'"),
    ("ours-random", "linear-sklearn", "beside the simple peer"),
    ("ours-random", "oracle", "what right labels alone would give"),
)


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Draws the figures of what there is, and returns the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    for stage, name in _DRAWN:
        own = of_stage(rows, stage)
        if own:
            _draw(own, name, folder / f"{stage}.png")
    return "\n\n".join(tables(rows).values())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables of what there is, by name."""
    found = {}
    main = of_stage(rows, "main") + of_stage(rows, "peers")
    if main:
        found["classifiers"] = classifiers(main)
    for stage, name in (*_DRAWN, ("tool", "decay")):
        if of_stage(rows, stage):
            found[stage] = by_number(of_stage(rows, stage), name)
    if main and (told := pairs(main)):
        found["pairs"] = told
    if of_stage(rows, "pools"):
        found["pools"] = pools(rows)
    if of_stage(rows, "tune"):
        found["tune"] = tuned(of_stage(rows, "tune"))
    return found


def of_stage(rows: Sequence[Row], stage: str) -> list[Row]:
    """Returns the rows of a stage."""
    return [row for row in rows if row["stage"] == stage]


def cells(rows: Sequence[Row]) -> list[tuple[str, str, list[Row]]]:
    """Returns the rows of each set and arm, in their order."""
    order = [*ARMS, *PEERS]
    return [
        (name, arm, own)
        for name in distinct(row["set"] for row in rows)
        for arm in order
        if (own := [r for r in rows if r["set"] == name and r["arm"] == arm])
    ]


def last(row: Row, average: str = "micro") -> float:
    """Returns the F1 of the last iteration, on the authors' documents."""
    return float(row["judged"][-1][average])


def classifiers(rows: Sequence[Row]) -> str:
    """Returns Table 3.2."""
    every = {(name, arm): own for name, arm, own in cells(rows)}
    lines = []
    for (name, arm), own in every.items():
        labels = own[0]["labels"]
        lines.append(
            (
                shown(name),
                arm,
                len(own),
                "" if not labels else _percent(own, "labels", "selected_noise"),
                f"{np.mean([row['judged'][0]['micro'] for row in own]):.1f}",
                with_deviation([last(row) for row in own], 1),
                f"{np.mean([last(row, 'macro') for row in own]):.1f}",
                with_deviation([row["held_out"]["micro"] for row in own], 1),
                *(
                    ""
                    if arm == _BASE
                    else told_difference(own, every.get((name, _BASE)), bits)
                    for bits in ("right", "held_out_right")
                ),
                TABLE_3_2.get(name, {}).get(arm, ""),
            )
        )
    titles = (
        *("documents of", "arm", "seeds", "noise of what is learnt from, %"),
        *("micro F1, first", "last", "macro F1, last", "held out, micro"),
        f"last, less `{_BASE}`, ± 2 standard errors",
        f"held out, less `{_BASE}`",
        "the thesis, BERT-base, micro / macro",
    )
    return table(titles, lines, (0, 1))


def pairs(rows: Sequence[Row]) -> str:
    """Returns differences of arms that differ in one thing, or in what is asked."""
    every = {(name, arm): own for name, arm, own in cells(rows)}
    lines = []
    for name in distinct(row["set"] for row in rows):
        for first, second, what in PAIRS:
            own, base = every.get((name, first)), every.get((name, second))
            if own and base:
                told = (
                    told_difference(own, base, bits)
                    for bits in ("right", "held_out_right")
                )
                pair = f"{first} less {second}"
                lines.append((shown(name), pair, what, *told))
    titles = (
        *("documents of", "difference", "of", "micro F1, last, ± 2 standard errors"),
        "held out",
    )
    return table(titles, lines, (0, 1, 2)) if lines else ""


def _percent(rows: Sequence[Row], *place: str) -> str:
    def at(row: Row) -> float:
        value: Any = row
        for name in place:
            value = value[name]
        return 100 * float(value)

    return f"{np.mean([at(row) for row in rows]):.1f}"


def by_number(rows: Sequence[Row], name: str) -> str:
    """Returns scores by fraction (Figure C.1), ratio (Figure 3.3, bottom) or decay.

    Each beside the first arm at the same value, and the same arm at its first value.
    """
    found = {
        (of, arm, value): [row for row in every if row[name] == value]
        for of, arm, every in cells(rows)
        for value in sorted({row[name] for row in every})
    }
    first_arm = distinct(arm for _, arm, _ in found)[0]
    lines = []
    for (of, arm, value), own in found.items():
        first = next(at for its, of_arm, at in found if (its, of_arm) == (of, arm))
        others = [(of, first_arm, value), (of, arm, first)]
        lines.append(
            (
                shown(of),
                arm,
                f"{value:g}",
                len(own),
                _percent(own, "labels", "selected_noise"),
                with_deviation([last(row) for row in own], 1),
                *(
                    ""
                    if other == (of, arm, value)
                    else told_difference(own, found.get(other))
                    for other in others
                ),
            )
        )
    titles = (
        *("documents of", "arm", name, "seeds", "noise, %", "micro F1, last"),
        f"less `{first_arm}`, ± 2 standard errors",
        f"less the first {name}",
    )
    return table(titles, lines, (0, 1))


def pools(rows: Sequence[Row]) -> str:
    """Returns both kinds of self-training, the same arms and seeds."""
    lines = []
    for of, arm, own in cells(of_stage(rows, "pools")):
        others = [
            row
            for row in of_stage(rows, "main")
            if row["set"] == of and row["arm"] == arm
        ]
        for kind, every in (("refreshed", others), ("accumulated", own)):
            if every:
                lines.append(
                    (
                        shown(of),
                        arm,
                        kind,
                        len(every),
                        with_deviation([last(row) for row in every], 1),
                        told_difference(own, others) if every is own else "",
                    )
                )
    titles = (
        *("documents of", "arm", "pool", "seeds", "micro F1, last"),
        "less `refreshed`, ± 2 standard errors",
    )
    return table(titles, lines, (0, 1, 2))


_TUNED = ("encoder", "epochs", "rate", "decay")
_TUNED_OF_PEERS = ("strength",)


def tuned(rows: Sequence[Row]) -> str:
    """Returns what epochs, rates and decays were chosen by."""
    lines = []
    for of, arm, every in cells(rows):
        names = _TUNED_OF_PEERS if arm in PEERS else _TUNED
        for given in distinct(tuple(row[key] for key in names) for row in every):
            own = [r for r in every if tuple(r[key] for key in names) == given]
            how = dict(zip(names, given, strict=True))
            lines.append(
                (
                    of,
                    arm,
                    *(
                        "" if how.get(key) is None else f"{how[key]:{form}}"
                        for key, form in (
                            *(("encoder", ""), ("epochs", "d"), ("rate", "g")),
                            *(("decay", "g"), ("strength", "g")),
                        )
                    ),
                    len(own),
                    with_deviation([last(row) for row in own], 1),
                    f"{np.mean([row['seconds'] for row in own]):.0f}",
                )
            )
    titles = (
        *("documents of", "arm", "encoder", "epochs", "rate", "decay", "C", "seeds"),
        *("micro F1, first training", "seconds"),
    )
    return table(titles, lines, (0, 1, 2))


def _draw(rows: Sequence[Row], name: str, path: pathlib.Path) -> None:
    figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    for of, arm, every in cells(rows):
        values = sorted({row[name] for row in every})
        means = [
            np.mean([last(row) for row in every if row[name] == value])
            for value in values
        ]
        axes.plot(values, means, marker="o", label=f"{arm}, {of}")
    axes.set(xlabel=name, ylabel="micro F1, last iteration, %")
    axes.legend(frameon=False)
    save(figure, path)
