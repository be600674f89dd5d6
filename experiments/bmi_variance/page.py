"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

from experiments.bmi_variance.report import tables as tables_of_parts
from experiments.kit.about import About
from experiments.kit.rows import Rows

ABOUT = About(
    "BMI, Figure 3",
    "How much less do gradients of IW-RAML vary than those of policy gradients?",
    "python -m experiments.bmi_variance --preset=small --data_dir=DATA",
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
    found = f"Variance of RL over IW-RAML: mean {ratio['raw']['mean']:.2g}"
    if ratio["scaled"] is not None:
        found += f", with mean gradients scaled alike {ratio['scaled']['mean']:.2g}"
    return (
        f"{found}; signal over noise {shares['rl']:.3f} and {shares['raml']:.3f} (the "
        "paper: mean ratio above 10,000)"
    )
