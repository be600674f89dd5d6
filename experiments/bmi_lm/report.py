"""Tables and figure of BMI on Penn Treebank."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import save, table, with_deviation
from experiments.kit.paired import less, paired_difference

Row = Mapping[str, Any]
# What a row must have to be reported.
NEEDS = ("name", "arm", "seed")
# Cao and Xu (2019), Table 1, perplexity of validation and test text of Penn Treebank,
# one run each: before and after finetuning.
PUBLISHED = {
    "none": ("58.08 / 55.97", "56.54 / 54.44"),
    "base": ("57.16 / 55.02", "56.05 / 53.97"),
    "full": ("56.85 / 54.65", "55.61 / 53.67"),
}
_COLOURS = {
    "none": "#4c4c4c",
    "none-long": "#b0b0b0",
    "base": "#0072b2",
    "full": "#d55e00",
    "base-last": "#009e73",
    "full-last": "#cc79a7",
}


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Draws the figure, and returns the tables of what there is."""
    folder.mkdir(parents=True, exist_ok=True)
    trained = [row for row in rows if "curve" in row]
    # What was tried before is in tables.
    compared = [row for row in trained if "finetuned" in row]
    if trained:
        draw(compared or trained, folder / "bmi_lm.png")
    return "\n\n".join(tables(rows).values())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables of what there is, by name."""
    main = [row for row in rows if "finetuned" in row]
    single = [row for row in rows if "curve" in row and "finetuned" not in row]
    projected = [row for row in rows if "hours_of_all_epochs" in row]
    found: dict[str, str] = {}
    if main:
        found |= {
            "perplexity": perplexities(main),
            "mixed": mixtures(main),
            "averages": averages(main),
            "cost": cost(main),
        }
    weighed = [row for row in single if row["weight"] is not None]
    lengths = {len(row["curve"]["nll"]) for row in weighed}
    plain = [row for row in single if row["weight"] is None]
    # Without BMI, for as many epochs.
    same = [row for row in plain if len(row["curve"]["nll"]) in lengths]
    trials = [row for row in plain if row not in same]
    if trials:
        found["trials"] = choices(trials, "trial")
    if weighed:
        found["weights"] = choices([*weighed, *same], "weight")
    if projected:
        found["projected"] = projections(projected)
    return found


def _arms(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Returns rows by arm, and by weight where an arm has several."""
    found: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row["seed"]):
        arm, weight = row["arm"], row["weight"]
        several = {other["weight"] for other in rows if other["arm"] == arm} != {weight}
        found.setdefault(f"{arm}, {weight:g}" if several else arm, []).append(row)
    order = [*_COLOURS]
    return dict(sorted(found.items(), key=lambda item: order.index(item[1][0]["arm"])))


def perplexities(rows: Sequence[Row]) -> str:
    """Returns the table of perplexities of models alone (Table 1)."""
    lines = []
    arms = _arms(rows)
    for arm, own in arms.items():
        cells = []
        for stage, bases in (
            ("scores", ("none",)),
            ("finetuned", ("none", "none-long", "base")),
        ):
            cells += [
                with_deviation([row[stage][split]["alone"] for row in own])
                for split in ("valid", "test")
            ]
            cells += [less(b, arms, own, stage, "test", "alone") for b in bases]
        lines.append((arm, *cells, *PUBLISHED.get(own[0]["arm"], ("", ""))))
    titles = (
        "arm",
        "valid",
        "test",
        "less `none`, ± 2 standard errors",
        "finetuned: valid",
        "test",
        "less `none`",
        "less `none-long`",
        "less `base`",
        "paper: valid / test",
        "finetuned",
    )
    return table(titles, lines)


def mixtures(rows: Sequence[Row]) -> str:
    """Returns the table of finetuned models mixed with Kneser-Ney 5."""
    lines: list[tuple[Any, ...]] = []
    arms = _arms(rows)
    for arm, own in arms.items():
        lines.append(
            (
                arm,
                *(
                    with_deviation([row["finetuned"][split]["mixed"] for row in own])
                    for split in ("valid", "test")
                ),
                *(
                    less(base, arms, own, "finetuned", "test", "mixed")
                    for base in ("none", "none-long")
                ),
                with_deviation([row["finetuned"]["mu"] for row in own]),
            )
        )
    n_gram = rows[0]["finetuned"]
    alone = [f"{n_gram[split]['kneser_ney']:.2f}" for split in ("valid", "test")]
    lines.append(("Kneser-Ney 5 alone", *alone, "", "", "1"))
    titles = (
        "mixed with Kneser-Ney 5",
        "valid",
        "test",
        "less `none`, ± 2 standard errors",
        "less `none-long`",
        "its weight",
    )
    return table(titles, lines)


def averages(rows: Sequence[Row]) -> str:
    """Returns the table of the triggered average beside 2TA of the same iterates."""
    lines = []
    for arm, own in _arms(rows).items():
        curves = [row["curve"] for row in own]
        if not all("two_tailed_loss" in curve for curve in curves):
            continue
        pairs = [
            (np.exp(min(c["two_tailed_loss"])), np.exp(min(c["averaged_loss"])))
            for c in curves
        ]
        lines.append(
            (
                arm,
                with_deviation([pair[1] for pair in pairs]),
                with_deviation([pair[0] for pair in pairs]),
                paired_difference(pairs),
            )
        )
    titles = (
        "arm",
        "valid: triggered",
        "two-tailed",
        "difference, ± 2 standard errors",
    )
    return table(titles, lines)


def cost(rows: Sequence[Row]) -> str:
    """Returns the table of seconds, and of what the discriminator has learnt."""
    lines = []
    for arm, own in _arms(rows).items():
        last = [row["curve"] for row in own]
        lines.append(
            (
                arm,
                with_deviation([c["seconds"][-1] for c in last], 0),
                with_deviation([c["seconds"][-1] / len(c["seconds"]) for c in last], 1),
                len(own),
                _at_the_end(last, "pair_accuracy"),
                _at_the_end(last, "val_pair_accuracy"),
                _at_the_end(last, "val_mine"),
                _at_the_end(last, "effective_sample_size", 1),
            )
        )
    titles = (
        "arm",
        "seconds before finetuning",
        "an epoch",
        "seeds",
        "pairs told apart",
        "of validation text",
        "MINE there, nats",
        "effective sample size",
    )
    return table(titles, lines)


def _at_the_end(curves: Sequence[Row], name: str, digits: int = 2) -> str:
    """Returns `mean ± deviation` of the last values of curves that have them."""
    found = [curve[name][-1] for curve in curves if name in curve]
    return with_deviation(found, digits) if found else ""


def choices(rows: Sequence[Row], what: str) -> str:
    """Returns the table of runs that chose a setting, the best first."""
    ordered = sorted(rows, key=lambda row: row["scores"]["valid"]["alone"])

    def name(row: Row) -> Any:
        if row[what] is None:
            return "no BMI"
        last = ", last features" if row["arm"].endswith("-last") else ""
        return f"{row[what]}{last}"

    shown = [
        (
            name(row),
            *(f"{row['scores'][split]['alone']:.2f}" for split in ("valid", "test")),
        )
        for row in ordered
    ]
    return table((what, "valid", "test"), shown)


def projections(rows: Sequence[Row]) -> str:
    """Returns the table of seconds a step and hours of the paper's size."""
    lines = []
    for row in rows:
        phases = [
            f"{row[f'step_seconds_phase{phase}']:.2f}"
            if f"step_seconds_phase{phase}" in row
            else ""
            for phase in (0, 1)
        ]
        lines.append(
            (
                row["corpus"]["name"],
                row["arm"],
                f"{row['parameters']:,}",
                *phases,
                f"{row['epochs']:,}",
                f"{row['hours_of_all_epochs']:,.0f}",
            )
        )
    titles = (
        "corpus",
        "arm",
        "parameters",
        "seconds a step",
        "in Phase II",
        "epochs at most",
        "hours of all",
    )
    return table(titles, lines, (0, 1))


def draw(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws validation perplexity by epochs and by seconds (Figure 2)."""
    figure, panels = plt.subplots(
        1, 2, figsize=(9.5, 3.8), layout="constrained", sharey=True
    )
    for arm, own in _arms(rows).items():
        for number, row in enumerate(own):
            losses = np.exp(row["curve"]["averaged_loss"])
            options = {
                "color": _COLOURS[row["arm"]],
                # Of an arm of several weights.
                "linestyle": "-" if arm == row["arm"] else ":",
                "linewidth": 1.2,
                "label": arm if number == 0 else None,
            }
            panels[0].plot(np.arange(1, len(losses) + 1), losses, **options)
            panels[1].plot(row["curve"]["seconds"], losses, **options)
    lowest = min(np.exp(min(row["curve"]["averaged_loss"])) for row in rows)
    panels[0].set(
        xlabel="epochs",
        ylabel="validation perplexity",
        ylim=(0.98 * lowest, 1.35 * lowest),
    )
    panels[1].set(xlabel="seconds of training")
    panels[0].legend(frameon=False)
    save(figure, path)
