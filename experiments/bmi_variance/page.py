"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

import numpy as np

from experiments.bmi_variance.report import NEEDS, ratio_of, shares
from experiments.bmi_variance.report import tables as tables_of_rows
from experiments.kit.about import About
from experiments.kit.rows import Rows

ABOUT = About(
    "BMI, Figure 3",
    "How much less do gradients of IW-RAML vary than those of policy gradients?",
    "python -m experiments.bmi_variance --preset=small --seeds=1,2,3 --data_dir=DATA",
    "37 min, 1 core",
)


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of_rows(Rows(folder).read_all(NEEDS))


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder).read_all(NEEDS)
    ratios = [row["ratios"]["raml"] for row in rows]
    raw = [each["raw"]["median"] for each in ratios]
    least = min(each["raw"]["mean"] for each in ratios)
    found = [ratio_of(row, "raml", "scaled") for row in rows]
    scaled = [each["median"] for each in found if each]
    one = (
        f"with expected gradients of one norm {_range(scaled)} ({len(scaled)} of "
        f"{len(rows)} models; in the rest the signal of RL was not told from 0)"
        if scaled
        else "the signal of RL was not told from 0"
    )
    rl, raml = (np.mean(shares(rows, name)) for name in ("rl", "raml"))
    return (
        f"Variance of RL over that of IW-RAML: median {_range(raw)} (means from "
        f"{least:.2g} on, the paper: above 10,000), {one}; signal over noise "
        f"{rl:.3f} and {raml:.3f}"
    )


def _range(values: list[float]) -> str:
    low, high = (f"{value:,.0f}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"
