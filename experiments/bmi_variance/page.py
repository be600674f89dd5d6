"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

from experiments.bmi_variance.report import tables as tables_of_parts
from experiments.kit.about import About
from experiments.kit.rows import Rows

ABOUT = About(
    "BMI, Figure 3",
    "How much less do gradients of IW-RAML vary than those of policy gradients?",
    "python -m experiments.bmi_variance --preset=small --model=MODEL --data_dir=DATA",
    "10 min, 1 core",
)


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of_parts({"variance": Rows(folder).read("variance")})


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    numbers = Rows(folder).read("variance")
    ratio = numbers["ratios"]["raml"]
    shares = {
        name: row["signal"] / row["noise"]
        for name, row in numbers["estimators"].items()
    }
    found = f"median {ratio['raw']['median']:,.0f} (mean {ratio['raw']['mean']:.2g}"
    found += ", the paper: above 10,000)"
    if ratio["scaled"] is not None:
        scaled = ratio["scaled"]["median"]
        found += f", with mean gradients of one norm {scaled:.0f}"
    return (
        f"Variance of RL over that of IW-RAML: {found}; signal over noise "
        f"{shares['rl']:.3f} and {shares['raml']:.3f}"
    )
