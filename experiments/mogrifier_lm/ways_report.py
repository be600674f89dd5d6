"""Tables of the ways of evaluating: temperature, masks, dynamic evaluation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.kit.drawing import table
from experiments.mogrifier_lm import published, report
from experiments.mogrifier_lm.report import Row


def ways_table(rows: Sequence[Row]) -> str:
    """Returns how well every way of evaluating does, of rows that have them.

    One line a group and way; what was chosen stands there where one seed has it.
    """
    lines = []
    unit = report.unit_of(rows)
    for name, group in report.grouped(rows).items():
        evaluated = [row["ways"] for row in group if row.get("ways")]
        ways = dict.fromkeys(way for found in evaluated for way in found["perplexity"])
        for way in ways:
            those = [found for found in evaluated if way in found["perplexity"]]
            numbers = _numbers(those, way, unit)
            chosen = _chosen(those[0], way) if len(those) == 1 else ""
            lines.append([name, way, len(those), *numbers, chosen])
    titles = ["run", "evaluation", "seeds", f"valid {unit}", f"test {unit}", "chosen"]
    return table(titles, lines, left=(0, 1, 5)) if lines else ""


def cells_table(rows: Sequence[Row]) -> str:
    """Returns how cells do in every way of evaluating, beside the thesis."""
    groups = _evaluated(rows)
    peers = ("LSTM", "Mogrifier")
    titles = ["valid / test perplexity", *map(report.label, groups)]
    titles += [f"thesis, {peer}" for peer in peers]
    found = [row["ways"]["settings"] for group in groups.values() for row in group]
    most = max((settings["samples"] for settings in found), default=0)
    lines = []
    for way, line in ways_beside(groups).items():
        # Of static evaluation with two numbers of masks the larger is beside theirs.
        kind = re.sub(rf"(?<=^static, ){most} masks?|(?<=^dynamic, ).*", "masks", way)
        theirs = published.WAYS.get(kind, {})
        pairs = [theirs.get(peer, ()) for peer in peers]
        lines.append([*line, *(" / ".join(map(str, pair)) for pair in pairs)])
    return table(titles, lines) if groups else ""


def combined_table(rows: Sequence[Row]) -> str:
    """Returns how runs that are to take the same time do in every way.

    Args:
        rows: The plain LSTM's, if there is one, in front.
    """
    groups = report.grouped(rows)
    titles = ["valid / test perplexity", *map(report.label, groups)]
    times = [
        f"{len(group[0]['curve'])}, {np.mean([r['seconds'] for r in group]) / 60:.0f}"
        for group in groups.values()
    ]
    lines: list[list[Any]] = [["epochs, minutes", *times]]
    by_hand = published.PLAIN_LSTM_LIKE_EVERYTHING
    for way, line in ways_beside(_evaluated(rows)).items():
        lines.append(line)
        if way == "dynamic" and len(line) == 3 and by_hand.is_of(rows[0]):
            name = "the same, eta 3e-4, decay and epsilon 1e-3"
            lines.append([name, f"{by_hand.valid} / {by_hand.test}", line[2]])
    return table(titles, lines) if groups else ""


def ways_beside(groups: Mapping[str, Sequence[Row]]) -> dict[str, list[str]]:
    """Returns a line a way of evaluating, a group beside the other, by way.

    The first line is the perplexity that the rows have without a choice.

    Args:
        groups: Of rows that were evaluated in all ways.
    """
    rows = [row for group in groups.values() for row in group]
    unit = report.unit_of(rows)
    lines = {"": ["as trained"]} if rows else {}
    for group in groups.values():
        trained = [{"perplexity": {"": row["perplexity"]}} for row in group]
        lines[""].append(" / ".join(_numbers(trained, "", unit)))
    for way in dict.fromkeys(way for row in rows for way in row["ways"]["perplexity"]):
        shown = way.replace("dynamic", "temperature, dynamic")
        line = lines[way] = [shown.replace("static", "temperature")]
        for group in groups.values():
            found = [row["ways"] for row in group if way in row["ways"]["perplexity"]]
            numbers = _numbers(found, way, unit) if found else ["-"]
            line.append(" / ".join(numbers))
    return lines


def _numbers(evaluated: Sequence[Row], way: str, unit: str) -> list[str]:
    """Returns what seeds reach on validation and test text in a way of evaluating."""
    return [
        "diverged" if None in values else report.with_spread(values, unit)
        for split in ("valid", "test")
        if (values := [found["perplexity"][way][split] for found in evaluated])
    ]


def _chosen(found: Row, way: str) -> str:
    """Returns what one evaluation used that validation text decided."""
    parts = [f"T {found['temperature'][way]:.2f}"]
    if "mask" in way:
        parts.append(f"rates x {found['rate_scale']:g}")
    if "dynamic" in way:
        names = {"learning_rate": "eta", "decay": "lambda", "epsilon": "epsilon"}
        parts += [f"{short} {found['dynamic'][key]:g}" for key, short in names.items()]
    return ", ".join(parts)


def _evaluated(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return report.grouped([row for row in rows if row.get("ways")])
