"""All tables and figures of `imm_lm`, from its rows."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence

from experiments.imm_lm import cost_report, published, report, scarcity, settings_report
from experiments.imm_lm.curves import learning_curves
from experiments.imm_lm.n_grams import n_grams_table
from experiments.imm_lm.studies import STUDIES
from experiments.kit.rows import Rows, read_studies

_PROJECTION = ("seconds_per_step.plain", "hours_per_epoch", "steps_per_epoch")


def write_report(results: pathlib.Path, figures: pathlib.Path) -> None:
    """Prints the tables of the page and what else rows say, and draws the figures.

    Args:
        results: Folder of the rows.
        figures: Folder of the figures.

    Raises:
        ValueError: If there are no rows, or a row is damaged.
    """
    rows = read_studies(results, STUDIES, report.NEEDS)
    for name, table in tables_of(
        rows, read_projection(results), read_n_grams(results)
    ).items():
        print(f"## {name}\n\n{table}\n")
    for name, members in rows.items():
        if not members:
            continue
        print(f"## runs of {name}\n\n{report.perplexity_table(members)}\n")
        print(f"{report.provenance(members)}\n\n{report.rates_line(members)}\n")
        if name in ("main", "full", "sampler"):
            corpus = members[0]["corpus"]
            title = f"{corpus['name']}, {corpus['train_tokens']:,} training tokens"
            learning_curves(members, figures / f"imm_lm_{name}.png", title)
    amounts = _amounts(rows)
    if scarcity.can_be_fitted(amounts):
        scarcity.scarcity_figure(amounts, figures / "imm_lm_scarcity.png")


def read_projection(results: pathlib.Path) -> report.Row | None:
    """Returns the row of the projection of the paper's preset, if there is one."""
    rows = Rows(results)
    return rows.read("projection", _PROJECTION) if "projection" in rows else None


def read_n_grams(results: pathlib.Path) -> report.Row | None:
    """Returns the row of Kneser-Ney alone, if there is one."""
    rows = Rows(results)
    return rows.read("n_grams", ("cells",)) if "n_grams" in rows else None


def tables_of(
    rows: Mapping[str, Sequence[report.Row]],
    projection: report.Row | None = None,
    n_grams: report.Row | None = None,
) -> dict[str, str]:
    """Returns the tables, by name, that can be made of rows.

    Args:
        rows: The rows of each study.
        projection: The row of the projection.
        n_grams: The row of Kneser-Ney alone.
    """
    rows = {study: _in_order(study, members) for study, members in rows.items()}
    made = {
        "tuning": settings_report.tuning_table,
        "main": lambda members: report.perplexity_table(members, times=False),
        "ablation": settings_report.ablation_table,
        "sampler": cost_report.sampler_table,
        "full": lambda members: report.perplexity_table(
            members, times=False, published=published.PERPLEXITY
        ),
    }
    tables = {name: make(rows[name]) for name, make in made.items() if rows.get(name)}
    if rows.get("ablation"):
        tables["counts"] = settings_report.counts_table(rows["ablation"])
    if rows.get("main"):
        tables["induced"] = report.induced_table(rows["main"])
    if rows.get("full"):
        tables["full-induced"] = report.induced_table(rows["full"], published.INDUCED)
    amounts = _amounts(rows)
    if scarcity.can_be_fitted(amounts):
        tables["scarcity"] = scarcity.scarcity_table(amounts)
        tables["law"] = scarcity.law_table(amounts)
    if n_grams is not None:
        tables["n-grams"] = n_grams_table(n_grams)
    if projection is not None:
        tables["projection"] = cost_report.projection_table(projection)
    tables["hours"] = cost_report.hours_table(rows)
    return tables


def _amounts(rows: Mapping[str, Sequence[report.Row]]) -> list[report.Row]:
    """Returns the rows that tell loss against the amount of text."""
    return [row for study in ("main", "scarcity", "full") for row in rows[study]]


def _in_order(study: str, rows: Sequence[report.Row]) -> list[report.Row]:
    """Returns rows in the order of the study's list of runs, others behind."""
    groups = [report.group_of(run.name) for run in STUDIES[study]([1])]
    places = {name: place for place, name in reversed(list(enumerate(groups)))}
    return sorted(
        rows, key=lambda row: places.get(report.group_of(row["name"]), len(places))
    )
