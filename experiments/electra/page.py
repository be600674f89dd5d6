"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import numpy as np

from experiments.electra.chosen_rows import (
    NEEDS,
    Row,
    cells,
    detectors,
    generators_of,
    masked_rows,
)
from experiments.electra.report import by_sizes, size_difference
from experiments.electra.report import tables as tables_of_rows
from experiments.kit.about import About, MadeBy
from experiments.kit.rows import Rows
from rlm_tf.command_line.wording import number_of

_COMMAND = "python -m experiments.electra --preset={preset}"


def _command(preset: str, seeds: str, flags: str = "") -> str:
    parts = (_COMMAND.format(preset=preset), flags, f"--seeds={seeds}")
    return " ".join((*filter(None, parts), "--data_dir=DATA"))


_SMALL = _command("small", "1,2,3")
ABOUT = About(
    "Dong, section 1.4 and appendix A",
    "Does a detector gain by a larger generator, if each has an optimiser of its own?",
    _SMALL,
    "25 min a run, 1 core",
)
_MAIN = (_SMALL, _command("between", "1"), _command("steps", "1"))
_RATES = (
    _command("rates", "9", "--arms=original"),
    _command("rates", "9", "--arms=decoupled --rates=0.0005,0.001,0.002"),
    _command("rates", "9", "--arms=decoupled --rates=0.001,0.002 --steps=3000"),
    _command("rates", "1", "--arms=decoupled --rates=0.001 --steps=3000"),
    _command(
        "rates",
        "1",
        "--arms=decoupled --rates=0.001 --generator_rate=0.001 --steps=3000",
    ),
)
_MADE_BY: MadeBy = {
    "generators": _command("generators", "1,2,3"),
    **dict.fromkeys(
        ("detection", "ranking", "frequency", "sizes", "gradients", "updates"), _MAIN
    ),
    "rates": _RATES,
    "steps": (_SMALL, _command("steps", "1"), *_RATES[-2:]),
    "tasks": (
        _command("tasks", "1,2,3"),
        _command("glue", "1"),
        _command("glue", "1", "--arms=masked --generators=4 --tasks=cola,mrpc"),
        _command(
            "glue", "1", "--arms=masked,original,decoupled --generators=4 --tasks=rte"
        ),
    ),
    "glue": _command("table-a2", "1"),
    "road_map": _command("small", "1").replace("electra ", "electra.road_map "),
    "sweep": (_command("sweep", "1"), _command("weights", "1")),
    "projected": (
        "python -m experiments.electra --preset=base",
        "python -m experiments.electra --preset=large",
    ),
}
# Seeds of a claim.
_CLAIMED = 3
# Of tables that there are rows of.
MADE_BY: MadeBy = {
    name: command
    for name, command in _MADE_BY.items()
    if name in tables_of_rows(Rows(pathlib.Path(__file__).parent).read_all(NEEDS))
}


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of_rows(Rows(folder).read_all(NEEDS))


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder).read_all(NEEDS)
    by_cell = cells(detectors(rows))
    if by_cell:
        parts = [
            f"{arm} with {number_of('layer', layers)} {_f1(own):.3f}"
            for (arm, layers), own in by_cell.items()
            # Of one seed nothing is claimed.
            if len(own) >= _CLAIMED
        ]
        scored = generators_of(detectors(rows), masked_rows(rows))
        peers = [row["n_gram_detector"]["f1"] for row in scored]
        parts += [f"n-grams of both sides {peer:.3f}" for peer in peers]
        gains = [
            f"{arm} {size_difference(own, 'f1', 3)} ({name})"
            for arm, name, own in by_sizes(detectors(rows))
        ]
        return (
            "F1 of replaced words by a larger generator, in layers, ± 2 standard "
            f"errors: {', '.join(gains)}; F1, {_CLAIMED} seeds: {', '.join(parts)}"
        )
    masked = sorted(masked_rows(rows), key=lambda row: row["generator"])
    nats = ", ".join(
        f"{number_of('layer', row['generator'])} {row['test']['nll']:.2f} nats (seed "
        f"{row['seed']})"
        for row in masked
    )
    return f"The comparison was not run yet; masked language models: {nats or 'none'}"


def _f1(rows: Sequence[Row]) -> float:
    return float(np.mean([row["own"]["test"]["f1"] for row in rows]))
