"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

import numpy as np

from experiments.distill_digits.report import accuracies, of_data, students_of
from experiments.distill_digits.report import tables as tables_of_rows
from experiments.kit.about import About, MadeBy
from experiments.kit.rows import Rows

_COMMAND = "python -m experiments.distill_digits --preset={preset} --seeds={seeds}"


def _command(preset: str, seeds: str) -> str:
    return _COMMAND.format(preset=preset, seeds=seeds)


_SMALL = _command("small", "1,2,3,4,5")
ABOUT = About(
    "Dong, section 2.5 and appendix B: Tables 2.1, 2.3, 2.4, B.2, B.3",
    "Do teachers that are trained for students make better students, of few digits?",
    _SMALL,
    "4 h, 1 core",
)
_TEACHERS = (_SMALL, _command("rivals", "1,2,3"), _command("further", "1"))
_PAPER = {
    "cifar100": ("paper", "paper-shufflenet", "paper-methods"),
    "tiny-imagenet": ("paper-tiny",),
    "imagenet": ("paper-imagenet",),
}
_ALONE = "python -m experiments.distill_digits --preset={preset}"
_MADE_BY: MadeBy = {
    **{
        f"{data}-{name}": tuple(
            f"{_command(preset, '1,2,3')} --project_steps=0 --data_dir=DATA"
            for preset in presets
        )
        for data, presets in _PAPER.items()
        for name in ("students", "fidelity", "uncertainty", "methods")
    },
    "projected": tuple(
        _ALONE.format(preset=preset) for own in _PAPER.values() for preset in own
    ),
    "students": (*_TEACHERS, _command("resnet8", "1,2,3,4,5")),
    "fidelity": (*_TEACHERS, _command("resnet8", "1,2,3,4,5")),
    "uncertainty": _TEACHERS,
    "methods": (_SMALL, _command("methods", "1,2,3"), _command("others", "1")),
}
# Of what there are rows of.
_NEEDS = ("name", "role")


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of_rows(Rows(folder).read_all(_NEEDS))


MADE_BY: MadeBy = {
    name: _MADE_BY[name] for name in tables(pathlib.Path(__file__).parent)
}


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = of_data(Rows(folder).read_all(_NEEDS), "digits")
    kd = [row for row in students_of(rows, "kd") if row["network"] == "wrn-16-1"]
    if not kd:
        return "The comparison was not run yet"
    alone = [r for r in students_of(rows, "alone") if r["network"] == "wrn-16-1"]
    parts = [f"alone {np.mean([*accuracies(alone).values()]):.2f}"] if alone else []
    for arm in ("standard", "soteacher", "soteacher-authors"):
        own = accuracies([row for row in kd if row["teacher"] == arm])
        if own:
            parts.append(f"of {arm} {np.mean([*own.values()]):.2f}")
    return f"Students, % of digits right: {', '.join(parts)}"
