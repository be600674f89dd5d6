"""From one method to the other, a change at a time: runs of one seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.electra.chosen_rows import primary
from experiments.kit.drawing import table

Row = Mapping[str, Any]
# Arm, rate of all or of the detector, and of a generator with an optimiser of its own;
# each differs from that above in what is said, the last from the first.
_STEPS = (
    ("original", 1e-3, None, ""),
    ("separate", 1e-3, None, "embeddings of their own"),
    ("decoupled", 1e-3, 1e-3, "an optimiser and clipping of their own"),
    ("decoupled", 1e-3, 2e-3, "the generator's rate twice as high"),
    ("decoupled", 2e-3, 2e-3, "the detector's rate twice as high"),
    (
        "disentangled",
        1e-3,
        2e-3,
        "from the first: such a generator, its embeddings shared without a gradient to "
        "them",
    ),
)
_LAYERS, _WEIGHT = 4, 50.0


def steps_between(rows: Sequence[Row]) -> str:
    """Returns the table of the steps; "" where a run is missing.

    Args:
        rows: Of the stages `main` and `rates`, of one number of steps.
    """
    lines = []
    for arm, rate, generator_rate, change in _STEPS:
        wanted = (arm, rate, generator_rate, _LAYERS, _WEIGHT)
        names = ("arm", "rate", "generator_rate", "generator", "weight")
        own = [row for row in rows if tuple(row[name] for name in names) == wanted]
        own = [row for row in own if "standalone" in row]
        if not own:
            return ""
        row = min(own, key=lambda row: row["seed"])
        scores = row["standalone"][primary(row)]["valid"]
        lines.append(
            (
                arm,
                f"{rate:g}",
                "" if generator_rate is None else f"{generator_rate:g}",
                change,
                row["seed"],
                f"{scores['f1']:.3f}",
                f"{scores['cross_entropy']:.4f}",
                f"{row['joint']['generator']:.3f}",
            )
        )
    titles = ("arm", "rate", "rate of the generator", "what is new", "seed")
    more = ("F1, valid", "nats a piece", "its generator, nats")
    return table((*titles, *more), lines, (0, 3))
