"""The tables of language models that learn from others."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.distill_language.config import ARMS, ENSEMBLE, N_GRAM
from experiments.kit.drawing import save, table, with_deviation
from experiments.kit.paired import less

Row = Mapping[str, Any]
_ORDER = (N_GRAM, *ARMS, ENSEMBLE)
# What arms are compared with, and what only teaches.
_BASE, _TEACH = "none", ("soteacher", N_GRAM)
# What an arm differs from in one thing.
_PAIRS = {
    "of-soteacher": "of-1",
    "of-5": "of-1",
    "of-5-folds": "of-5",
    "of-5-dynamic": "of-5-folds",
    "of-5-imm": "of-5",
    "of-1-dropout": "of-1",
    "on-policy": "of-1",
    "half-of-5": "half",
}
# Fields of what `token_fidelity` finds, as they are shown.
_COMPARED = (
    ("teacher_nll", 1, 3),
    ("student_nll", 1, 3),
    ("teacher_calibration", 1, 3),
    ("student_calibration", 1, 3),
    ("agreement", 100, 1),
    ("divergence", 1, 3),
)
_GROUP_NAMES = ("all", "most frequent quarter", "second", "third", "rarest quarter")


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Draws perplexities by arm, and returns the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    if by_arm(rows):
        draw(rows, folder / "arms.png")
    return "\n\n".join(tables(rows).values())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables of what there is, by name."""
    found = {}
    if by_arm(rows):
        found["arms"] = arms(rows)
    if any("fidelity" in row for row in rows if row["stage"] == "main"):
        found["fidelity"] = fidelities(rows)
    if any("lumps" in row for row in by_arm(rows).get("of-1", [])):
        found["lumps"] = lumps(by_arm(rows)["of-1"])
    if any(row["stage"] == "trials" for row in rows):
        found["trials"] = trials(rows)
    return found


def by_arm(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Returns the compared rows of each arm.

    Of `none` those whose seeds another arm has: the others only teach.
    """
    main = [row for row in rows if row["stage"] == "main"]
    found = {arm: [row for row in main if row["arm"] == arm] for arm in _ORDER}
    seeds = {row["seed"] for row in main if row["arm"] not in (_BASE, *_TEACH)}
    if seeds:
        found[_BASE] = [row for row in found[_BASE] if row["seed"] in seeds]
    return {arm: own for arm, own in found.items() if own}


def arms(rows: Sequence[Row]) -> str:
    """Returns perplexities alone and mixed, and differences from no teacher."""
    groups = by_arm(rows)
    lines = []
    for arm, own in groups.items():
        seconds = [row["seconds"] for row in own if row.get("seconds")]
        lines.append(
            (
                arm,
                len(own),
                with_deviation([row["test"] for row in own], 1),
                less(_BASE, groups, own, "test", digits=1),
                with_deviation([row["mixed_test"] for row in own], 1),
                less(_BASE, groups, own, "mixed_test", digits=1),
                _less_its_pair(arm, groups, "test"),
                _less_its_pair(arm, groups, "mixed_test"),
                f"{own[0].get('parameters', 0) / 1e6:.2f}" if seconds else "",
                f"{np.mean(seconds):.0f}" if seconds else "",
            )
        )
    titles = (
        "arm",
        "seeds",
        "test perplexity",
        "less `none`, ± 2 standard errors",
        "mixed with Kneser-Ney 5",
        "less `none`",
        "less another arm",
        "likewise, mixed",
        "million weights",
        "seconds",
    )
    return table(titles, lines)


def _less_its_pair(arm: str, groups: Mapping[str, Sequence[Row]], name: str) -> str:
    """Returns how far an arm is above that of `_PAIRS`, which is named."""
    base = _PAIRS.get(arm, "")
    found = less(base, groups, groups[arm], name, digits=1)
    return f"`{base}`: {found}" if found else ""


def fidelities(rows: Sequence[Row]) -> str:
    """Returns how students differ from their teachers, by word frequency.

    Of what has no teacher its own calibration is shown.
    """
    lines = []
    for arm, own in by_arm(rows).items():
        known = [row["fidelity"] for row in own if "fidelity" in row]
        for index, name in enumerate(_GROUP_NAMES):
            parts = [found[index] for found in known if index < len(found)]
            if parts:
                cells = [
                    f"{scale * np.mean([part[field] for part in parts]):.{digits}f}"
                    if "of" in ARMS[arm] or field.startswith("student")
                    else ""
                    for field, scale, digits in _COMPARED
                ]
                lines.append((arm, name, *cells))
    titles = (
        "arm",
        "words",
        "teacher, nats",
        "student, nats",
        "teacher, ECE",
        "student, ECE",
        "same word, %",
        "KL, nats",
    )
    return table(titles, lines, (0, 1))


def lumps(rows: Sequence[Row]) -> str:
    """Returns what is lost where only k words of a teacher are stored."""
    known = [row["lumps"] for row in rows if "lumps" in row]
    lines = []
    for index, first in enumerate(known[0]):
        own = [found[index] for found in known]
        short = [1 - each["lumped"] / each["kd"] for each in own]
        lines.append(
            (
                f"{first['k']:,.0f}",
                len(own),
                f"{100 * np.mean([each['mass'] for each in own]):.1f}",
                with_deviation([each["kd"] for each in own], 4),
                f"{100 * np.mean(short):.1f}",
                f"{100 * np.mean([each['gradient'] for each in own]):.1f}",
            )
        )
    titles = (
        "words stored",
        "seeds",
        "of the teacher's probability, %",
        "KD, nats",
        "lumped less, %",
        "wrong in the gradient, %",
    )
    return table(titles, lines)


def trials(rows: Sequence[Row]) -> str:
    """Returns what temperature and weight were chosen by."""
    own = [row for row in rows if row["stage"] == "trials"]
    lines = [
        (
            row["arm"],
            row["temperature"],
            row["weight"],
            f"{row['valid']:.1f}",
            f"{row['mixed_valid']:.1f}",
        )
        for row in sorted(own, key=lambda row: row["valid"])
    ]
    titles = ("arm", "temperature", "weight", "valid perplexity", "mixed")
    return table(titles, lines)


def draw(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws test perplexities, alone and mixed."""
    groups = by_arm(rows)
    figure, panel = plt.subplots(figsize=(8, 4), layout="constrained")
    for name, title, colour in (
        ("test", "alone", "#0072b2"),
        ("mixed_test", "mixed with Kneser-Ney 5", "#d55e00"),
    ):
        means = [np.mean([row[name] for row in own]) for own in groups.values()]
        spread = [np.std([row[name] for row in own]) for own in groups.values()]
        panel.errorbar(
            range(len(means)),
            means,
            spread,
            fmt="o",
            color=colour,
            capsize=3,
            label=title,
        )
    panel.set_xticks(range(len(groups)), groups, rotation=30, ha="right")
    panel.set_ylabel("test perplexity")
    panel.legend()
    save(figure, path)
