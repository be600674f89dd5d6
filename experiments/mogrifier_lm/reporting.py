"""All tables and figures of `mogrifier_lm`, from its rows."""

from __future__ import annotations

import pathlib

from experiments.kit.rows import read_studies
from experiments.mogrifier_lm import evidence_report, report, ways_report
from experiments.mogrifier_lm.studies import STUDIES
from experiments.mogrifier_lm.tables import read_tables


def write_report(results: pathlib.Path, figures: pathlib.Path) -> None:
    """Prints the tables of the page and what else rows say, and draws the figures.

    Args:
        results: Folder of the rows.
        figures: Folder of the figures.

    Raises:
        ValueError: If there are no rows, or a row is damaged.
    """
    rows = read_studies(results, STUDIES, report.NEEDS)
    figures.mkdir(parents=True, exist_ok=True)
    for name, text in read_tables(results).items():
        print(f"## {name}\n\n{text}\n")
    for name, members in rows.items():
        if not members:
            continue
        parts = [ways_report.ways_table(members)]
        explained = [row for row in members if row.get("evidence")]
        # The page has those of the cells.
        if explained and name != "cells":
            parts.append(evidence_report.frequency_table(explained))
            parts.append(evidence_report.recovery_table(explained))
            parts.append(evidence_report.gates_table(explained))
        if any(parts):
            print("\n\n".join([f"## More of {name}", *filter(None, parts)]), end="\n\n")
        path = figures / f"mogrifier_lm_{name}.png"
        report.results_figure(members, path)
    if rows["cells"] and rows["variants"]:
        path = figures / "mogrifier_lm_rounds.png"
        report.rounds_figure([*rows["cells"], *rows["variants"]], path)
