"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

from experiments.imm_questions.tables import gain, mean
from experiments.imm_questions.tables import tables as tables_of_parts
from experiments.kit.about import About, MadeBy
from experiments.kit.rows import Rows

ABOUT = About(
    "IMM, the summary's questions 1 to 5 and next check 3",
    "When does IMM help, and when does it not?",
    "python -m experiments.imm_questions --preset=paper",
    "1.7 h, 2 cores",
)

_RUN = "python -m experiments.imm_questions --preset=paper"
MADE_BY: MadeBy = {"imperfect_grid": f"{_RUN} --parts=imperfect"}


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    rows = Rows(folder)
    return tables_of_parts({name: rows.read(name) for name in rows.names()})


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder)
    imperfect, digits = rows.read("imperfect"), rows.read("digits")
    right = {
        cell["arm"]: gain(cell)
        for cell in imperfect["cells"]
        if (cell["kind"], cell["amount"]) == ("label noise", 0.0)
    }
    few = min(cell["size"] for cell in digits["cells"])
    of_few = {
        cell["arm"]: mean(cell) for cell in digits["cells"] if cell["size"] == few
    }
    return (
        f"With a right P_hat and {imperfect['size']} examples IMM gains {right['imm']} "
        f"in accuracy, noising {right['noising, best ratio']}; with {few} digits IMM "
        f"reaches {of_few['imm']}, noising {of_few['noising']}, the patch alone "
        f"{digits['patch_accuracy']:.3f}"
    )
