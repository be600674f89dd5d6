"""All tables and figures of `mogrifier_lm`, from its rows."""

from __future__ import annotations

import pathlib

from experiments.kit.rows import read_studies
from experiments.mogrifier_lm import evidence_report, report
from experiments.mogrifier_lm.studies import STUDIES


def write_report(results: pathlib.Path, figures: pathlib.Path) -> None:
    """Prints the tables of every study that has rows, and draws the figures.

    Args:
        results: Folder of the rows.
        figures: Folder of the figures.

    Raises:
        ValueError: If there are no rows, or a row is damaged.
    """
    rows = read_studies(results, STUDIES, report.NEEDS)
    figures.mkdir(parents=True, exist_ok=True)
    for name, members in rows.items():
        if not members:
            continue
        parts = [f"## {name}", report.results_table(members)]
        parts.append(report.ways_table(members))
        explained = [row for row in members if row.get("evidence")]
        if explained:
            parts.append(evidence_report.frequency_table(explained))
            parts.append(evidence_report.recovery_table(explained))
            parts.append(evidence_report.gates_table(explained))
        print("\n\n".join(filter(None, parts)), end="\n\n")
        path = figures / f"mogrifier_lm_{name}.png"
        report.results_figure(members, path)
    if rows["cells"] and rows["variants"]:
        path = figures / "mogrifier_lm_rounds.png"
        report.rounds_figure([*rows["cells"], *rows["variants"]], path)
