"""The tables of the study's page, from its rows."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.kit.drawing import table, with_deviation
from experiments.kit.rows import Rows, read_studies
from experiments.mogrifier_lm import evidence_report, published, report, ways_report
from experiments.mogrifier_lm.presets import PRESETS
from experiments.mogrifier_lm.report import Column, Row
from experiments.mogrifier_lm.studies import STUDIES, VARIANTS

_VARIANTS = {
    "full-rank": "full rank",
    "no-zigzag": "no zigzag",
    "mlstm": "multiplicative LSTM",
    "rounds-2": "2 rounds",
    "rounds-4": "4 rounds",
    "rounds-6": "6 rounds",
    "rank-3": "rank 3",
    "4-samples": "4 dropout samples",
    "imm": "Mogrifier with IMM",
}
_FURTHER = {
    "wikitext-2-lstm": ("WikiText-2", "LSTM"),
    "wikitext-2-mogrifier": ("WikiText-2", "Mogrifier"),
    "characters-lstm": ("PTB characters", "LSTM"),
    "characters-mogrifier": ("PTB characters", "Mogrifier"),
    "rlstm-in-the-time-of-lstm": ("PTB, 14 epochs", "RLSTM"),
}


def read_tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables that the rows of a folder suffice for, by name.

    Raises:
        ValueError: If there are no rows, or a row is damaged.
    """
    rows = read_studies(folder, STUDIES, report.NEEDS)
    alone = Rows(folder)
    return tables(rows, alone.read("projection") if "projection" in alone else {})


def tables(rows: Mapping[str, Sequence[Row]], projection: Row) -> dict[str, str]:
    """Returns the tables that there are rows for, by name.

    Args:
        rows: Those of each study.
        projection: The hours of presets, by the name of the run.
    """
    cells, combined = rows["cells"], _plain_lstm_first(rows["combined"])
    explained = [row for row in cells if row.get("evidence")]
    compared = [row for row in combined if row.get("evidence")]
    found = {
        "trials": _trials(rows["trials"]),
        "cells": _cells(cells),
        "words": evidence_report.frequency_table(explained) if explained else "",
        "recovery": evidence_report.recovery_table(explained) if explained else "",
        "gates": evidence_report.gates_table(explained) if explained else "",
        "variants": _variants(rows["variants"], cells),
        "further": _further(rows["further"]),
        "ways": ways_report.cells_table(cells),
        "combined": ways_report.combined_table(combined),
        "combined_words": evidence_report.frequency_table(compared) if compared else "",
        "cost": _cost(rows),
        "projection": _projection(projection),
    }
    return {name: text for name, text in found.items() if text}


def _plain_lstm_first(rows: Sequence[Row]) -> list[Row]:
    """Returns rows with those of the plain LSTM, the peer, in front."""
    return sorted(rows, key=lambda row: report.name_of(row) != "plain-lstm")


def _trials(rows: Sequence[Row]) -> str:
    columns = report.result_columns(rows)
    lines = report.lines_of(report.grouped(rows), columns)
    return table(["run", *columns], lines) if lines else ""


def _cells(rows: Sequence[Row]) -> str:
    groups = report.grouped(rows)
    columns = {
        **_perplexities(rows),
        "test, less the LSTM's of the same seed": lambda group: difference(
            group, groups.get("lstm", []), "test"
        ),
        **_ablation(),
    }
    named = {report.label(name): group for name, group in groups.items()}
    lines = report.lines_of(named, columns)
    return table(["cell", *columns], lines) if lines else ""


def difference(group: Sequence[Row], peers: Sequence[Row], split: str) -> str:
    """Returns mean ± standard error of what a group has more than its peers.

    Args:
        group: Rows of one setting.
        peers: Those of another; the same seeds are compared.
        split: "valid" or "test".
    """
    theirs = {row["config"]["seed"]: row["perplexity"][split] for row in peers}
    differences = [
        row["perplexity"][split] - theirs[row["config"]["seed"]]
        for row in group
        if row["config"]["seed"] in theirs
    ]
    if not any(differences):
        return ""
    mean = f"{np.mean(differences):+.2f}"
    if len(differences) == 1:
        return mean
    error = np.std(differences, ddof=1) / math.sqrt(len(differences))
    return f"{mean} ± {error:.2f}"


def _variants(rows: Sequence[Row], cells: Sequence[Row]) -> str:
    found, arms = report.grouped(rows), report.grouped(cells)
    columns = {
        **_perplexities(rows),
        "width": lambda group: group[0]["width"],
        **_ablation(),
    }
    groups = {}
    for name, settings in {"lstm": "", "mogrifier": ", 5 rounds, rank 40"}.items():
        if name in arms:
            many = len(arms[name]) > 1
            seeds = f", {len(arms[name])} seeds" if many else ""
            groups[f"{report.label(name)}{settings}{seeds}"] = arms[name]
    for name in VARIANTS:
        if name in found:
            groups[_VARIANTS.get(name, name)] = found[name]
    lines = report.lines_of(groups, columns)
    sampled, by_hand = _VARIANTS["4-samples"], published.FOUR_SAMPLES_WITH_TEMPERATURE
    for row in groups.get(sampled, []):
        if by_hand.is_of(row):
            name = f"{sampled}, with a temperature"
            line = [name, by_hand.valid, by_hand.test, "", row["width"], ""]
            lines.insert(1 + list(groups).index(sampled), line)
    return table(["variant", *columns], lines) if found else ""


def _perplexities(rows: Sequence[Row]) -> dict[str, Column]:
    columns = report.result_columns(rows)
    return {name: columns[name] for name in list(columns)[:3]}


def _ablation() -> dict[str, Column]:
    return {
        "thesis, valid, 24 million parameters": lambda group: published.ABLATION.get(
            report.name_of(group[0]), ""
        )
    }


def _further(rows: Sequence[Row]) -> str:
    groups = report.grouped(rows)
    lines = []
    for name, (text, cell) in _FURTHER.items():
        if name not in groups:
            continue
        group = groups[name]
        of_characters = report.unit_of(group) == "bits"
        splits = [
            [row["perplexity"][split] for row in group] for split in ("valid", "test")
        ]
        digits = 3 if of_characters else 2
        iterates = [row["raw_valid_perplexity"] for row in group]
        known = [value for value in iterates if value is not None]
        bits = " / ".join(report.with_spread(values, "bits") for values in splits)
        lines.append(
            [
                text,
                cell,
                group[0]["width"],
                *(with_deviation(values, digits) for values in splits),
                bits if of_characters else "",
                with_deviation(known, digits) if known else "-",
                published.OTHER_TEXTS.get(name, ""),
            ]
        )
    titles = [
        "text",
        "cell",
        "width",
        "valid perplexity",
        "test perplexity",
        "bits a character, valid / test",
        "last iterate, valid",
        "thesis, valid / test",
    ]
    return table(titles, lines, left=(0, 1)) if lines else ""


def _cost(rows: Mapping[str, Sequence[Row]]) -> str:
    trained = {row["seconds"] for row in rows["trials"]}
    lines = []
    for study, members in rows.items():
        # The trials are seeds of the cells, too.
        own = [
            row for row in members if study == "trials" or row["seconds"] not in trained
        ]
        minutes = [row["seconds"] / 60 for row in own]
        if own:
            lines.append(
                [
                    study,
                    len(own),
                    f"{min(minutes):.0f} to {max(minutes):.0f}",
                    f"{sum(minutes) / 60:.1f}",
                ]
            )
    titles = ["study", "runs", "minutes a run", "hours in all"]
    return table(titles, lines)


def _projection(found: Row) -> str:
    lines = []
    for preset, config in PRESETS.items():
        numbers = found.get(f"{preset}-{config.cell_name}-seed1")
        if numbers:
            lines.append(
                [
                    f"`{preset}`",
                    f"{numbers['parameters'] / 1e6:.0f}",
                    f"{numbers['width']:,}",
                    f"{numbers['step_seconds']:.2f}",
                    f"{numbers['steps_per_epoch']:,}",
                    numbers["epochs"],
                    f"{numbers['hours_of_all_epochs']:,.0f}",
                ]
            )
    titles = [
        "preset",
        "million parameters",
        "width",
        "s/step",
        "steps an epoch",
        "epochs",
        "hours",
    ]
    return table(titles, lines) if lines else ""
