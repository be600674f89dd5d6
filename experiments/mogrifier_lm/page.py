"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

import numpy as np

from experiments.kit.about import About, MadeBy
from experiments.kit.rows import Rows
from experiments.mogrifier_lm import published, report
from experiments.mogrifier_lm.tables import read_tables

ABOUT = About(
    "Melis (2023), chapters 2 and 4, Tables 2.1 to 2.3",
    "Does a Mogrifier or an RLSTM beat an LSTM of as many parameters?",
    "python -m experiments.mogrifier_lm --study=cells --seeds=1,2,3 --data_dir=DATA",
    "20 to 40 min a run, 17 h all, 1 core",
)

_RUN = "python -m experiments.mogrifier_lm"
_COMBINED = (
    f"{_RUN} --study=combined --mc_samples=4 --dynamic_mc_samples=1 --data_dir=DATA"
)
MADE_BY: MadeBy = {
    "trials": f"{_RUN} --study=trials --data_dir=DATA",
    "variants": (f"{_RUN} --study=variants --data_dir=DATA", ABOUT.command),
    "further": f"{_RUN} --study=further --data_dir=DATA",
    "ways": f"{_RUN} --study=cells --seeds=1 --mc_samples=30 --data_dir=DATA",
    "combined": _COMBINED,
    "combined_words": _COMBINED,
    "projection": f"{_RUN} --preset=PRESET --project_steps=1 --data_dir=DATA",
    "cost": (),
}


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return read_tables(folder)


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    cells = report.grouped(Rows(folder, "cells").read_all(report.NEEDS))
    reached = {
        name: [row["perplexity"]["test"] for row in group]
        for name, group in cells.items()
    }
    spread = max(np.std(values, ddof=1) for values in reached.values())
    means = ", ".join(
        f"{report.label(name)} {np.mean(values):.1f}"
        for name, values in reached.items()
    )
    together = {
        name: Rows(folder, "combined").read(f"{name}-seed1")["perplexity"]["test"]
        for name in ("plain-lstm", "everything")
    }
    thesis = published.WAYS["static"]
    return (
        f"Test perplexity: {means}, spread of seeds up to {spread:.1f} (thesis, ten "
        f"times as large: LSTM {thesis['LSTM'][1]}, Mogrifier "
        f"{thesis['Mogrifier'][1]}); trained for an hour: LSTM "
        f"{together['plain-lstm']:.1f}, Mogrifier with 2TA and IMM "
        f"{together['everything']:.1f}"
    )


def values(folder: pathlib.Path) -> dict[str, str]:
    """Returns by how much perplexity falls, by what is done, for other pages."""
    rows = Rows(folder, "cells").read_all(report.NEEDS)
    cells = report.grouped(rows)
    test = {
        name: np.mean([row["perplexity"]["test"] for row in group])
        for name, group in cells.items()
    }
    averaged = [
        row["perplexity"]["valid"] / row["raw_valid_perplexity"] for row in rows
    ]
    dynamic = [
        row["ways"]["perplexity"]["dynamic"]["test"]
        / row["ways"]["perplexity"]["static"]["test"]
        for row in rows
        if row.get("ways")
    ]
    ratios = {
        "averaged": np.mean(averaged),
        "dynamic": np.mean(dynamic),
        "mogrifier": test["mogrifier"] / test["lstm"],
    }
    return {name: f"{round(100 * (1 - ratio))} %" for name, ratio in ratios.items()}
