"""All tables and figures of `imm_lm`, from its rows."""

from __future__ import annotations

import pathlib

from experiments.imm_lm import report, scarcity
from experiments.imm_lm.studies import STUDIES
from experiments.kit.rows import read_studies


def write_report(results: pathlib.Path, figures: pathlib.Path) -> None:
    """Prints the tables of every study that has rows, and draws the figures.

    Args:
        results: Folder of the rows.
        figures: Folder of the figures.

    Raises:
        ValueError: If there are no rows, or a row is damaged.
    """
    rows = read_studies(results, STUDIES, report.NEEDS)
    for name, members in rows.items():
        if not members:
            continue
        corpus = members[0]["corpus"]
        print(f"## {name}\n\n{report.perplexity_table(members)}\n")
        print(f"{report.provenance(members)}\n\n{report.rates_line(members)}\n")
        if name in ("main", "full", "sampler"):
            print(f"{report.induced_table(members)}\n")
            title = f"{corpus['name']}, {corpus['train_tokens']:,} training tokens"
            report.learning_curves(members, figures / f"imm_lm_{name}.png", title)
        if name in ("tuning", "ablation"):
            print(f"{report.settings_table(members)}\n")
        if name == "ablation":
            print(f"{report.counts_table(members)}\n")
    amounts = [*rows["main"], *rows["scarcity"], *rows["full"]]
    if scarcity.can_be_fitted(amounts):
        for text in ("valid", "test"):
            table = scarcity.scarcity_table(amounts, text)
            print(f"## scarcity law, {text}\n\n{table}\n")
        scarcity.scarcity_figure(amounts, figures / "imm_lm_scarcity.png")
