"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

from experiments.imm_logistic.published import EXTRA_DATA
from experiments.imm_logistic.tables import extra_data, figure_2_means
from experiments.imm_logistic.tables import tables as tables_of_parts
from experiments.kit.about import About, MadeBy
from experiments.kit.rows import Rows

_PARTS = ("figure1", "figure2", "figure4", "rule", "tuning", "choices")
ABOUT = About(
    "IMM, Section 1.1, Figures 1, 2 and 4",
    "Does a model of one feature help logistic regression on three?",
    "python -m experiments.imm_logistic --preset=paper",
    "9 min, 2 cores",
)

_RUN = "python -m experiments.imm_logistic --preset=paper"
MADE_BY: MadeBy = {
    "claims": f"{_RUN} --parts=figure2",
    "sweep": f"{_RUN} --parts=rule",
    "wide": f"{_RUN} --parts=choices",
}


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    rows = Rows(folder)
    return tables_of_parts({name: rows.read(name) for name in _PARTS})


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    numbers = Rows(folder).read("figure2")
    sizes = [cell["size"] for cell in numbers["cells"]]
    means = figure_2_means(numbers)
    few = {arm: values[sizes.index(10)] for arm, values in means.items()}
    extra = extra_data(sizes, means)
    return (
        f"With 10 examples accuracy {few['imm']:.3f} with IMM, {few['none']:.3f} "
        f"without, {few['noising']:.3f} with noising at its best; worth "
        f"{extra.mean():.0f} % more data on average (the paper: {EXTRA_DATA})"
    )


def values(folder: pathlib.Path) -> dict[str, str]:
    """Returns accuracies for other pages."""
    numbers = Rows(folder).read("figure2")
    place = [cell["size"] for cell in numbers["cells"]].index(10)
    means = figure_2_means(numbers)
    gain = means["imm"][place] - means["none"][place]
    return {"gain_at_10": f"{100 * gain:.0f} points of accuracy"}
