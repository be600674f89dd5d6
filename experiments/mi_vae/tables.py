"""The tables of each study, and of the time that all of them take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from experiments.kit.drawing import table
from experiments.mi_vae.report import Row, points_table
from experiments.mi_vae.sentences_report import best_table, sentences_table
from experiments.mi_vae.signal import signal_table
from experiments.mi_vae.studies import STUDIES
from experiments.mi_vae.symbols_report import levels_table

# By study, and by the names that its tables have on the page.
_MAKERS: dict[str, dict[str, Callable[[Sequence[Row]], str]]] = {
    "symbols": {"points": points_table, "levels": levels_table},
    "many_symbols": {
        "many_symbols": points_table,
        "many_symbols_levels": levels_table,
    },
    "sentences": {"sentences": sentences_table, "best_of_sentences": best_table},
    "signal": {"signal": signal_table},
}


def study_tables(study: str | None, rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables of a study, by name; of runs without one, their points."""
    makers = _MAKERS[study] if study else {"points": points_table}
    return {name: make(rows) for name, make in makers.items()}


def in_order(study: str, rows: Sequence[Row]) -> list[Row]:
    """Returns the rows in the order in which a study has its runs, others behind."""
    seeds = sorted({row["config"]["seed"] for row in rows})
    places = {name: place for place, name in enumerate(STUDIES[study](seeds))}
    return sorted(rows, key=lambda row: places.get(row["name"], len(places)))


def cost_table(rows: Mapping[str, Sequence[Row]]) -> str:
    """Returns the time that steps of training take, one line a study."""
    lines = []
    for study, members in rows.items():
        steps = [row["step_ms"] for row in members]
        runs = [row["step_ms"] * row["config"]["steps"] / 60_000 for row in members]
        lines.append(
            [
                study,
                len(members),
                f"{min(steps):.0f} to {max(steps):.0f}",
                f"{min(runs):.1f} to {max(runs):.1f}",
                f"{sum(runs) / 60:.2f}",
            ]
        )
    return table(["study", "runs", "ms/step", "minutes a run", "hours, all"], lines)
