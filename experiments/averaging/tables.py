"""Tables of the studies of averages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.averaging.published import LOSSES, PROPOSITIONS
from experiments.kit.drawing import table

Numbers = Mapping[str, Any]

ITERATES = "iterates themselves"
# Parts whose learning rate is no constant, without averages.
_DROPS = {
    "drop": "drops, at 60% and 80%",
    "late_drop": "drops, at 85%",
    "decay": "drops, linearly from 50%",
}
_EARLY = 0.4


def tables(found: Mapping[str, Numbers]) -> dict[str, str]:
    """Returns the tables of the parts there are, by name."""
    made = {}
    if "trajectory" in found:
        made["trajectory"] = trajectory(curves_of(found))
    for name in ("overfitting", "basin"):
        if name in found:
            made[name] = failing(found[name]["curves"])
    if "lengths" in found:
        made["lengths"] = optimal_lengths(found["lengths"])
    if "least_squares" in found:
        made["least_squares"] = least_squares(found["least_squares"])
        made["propositions"] = propositions(found["least_squares"])
    return made


def curves_of(found: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Returns the curves along the one trajectory, and those of falling rates."""
    curves = dict(found["trajectory"]["curves"])
    curves |= {
        name: found[part]["curves"]["drops"]
        for part, name in _DROPS.items()
        if part in found
    }
    # Of a short run, long periods see no end.
    return {name: columns for name, columns in curves.items() if columns}


def best_of(curves: Mapping[str, Numbers], family: str) -> str | None:
    """Returns the curve of a family with the lowest last loss, its tuned member."""
    names = [name for name in curves if name.startswith(family)]
    if not names:
        return None
    return min(names, key=lambda name: curves[name]["loss"][-1])


def trajectory(curves: Mapping[str, Numbers]) -> str:
    """Returns the losses of all averages early, at the end and at their best."""
    two_tailed = curves["2TA, E"]
    iterates = {
        "step": two_tailed["step"],
        "loss": two_tailed["raw_loss"],
        "length": [1],
    }
    rows = []
    for name, columns in {ITERATES: iterates, **curves}.items():
        steps, losses = columns["step"], columns["loss"]
        at = int(np.searchsorted(steps, _EARLY * steps[-1]))
        rows.append(
            (
                name,
                f"{losses[min(at, len(losses) - 1)]:.3f}",
                f"{losses[-1]:.3f}",
                f"{np.interp(steps[-1], two_tailed['step'], two_tailed['loss']):.3f}",
                f"{min(losses):.3f}",
                LOSSES.get(name, ""),
                # All are in an exponential average, but with weights that fall.
                "" if name.startswith("EMA") else f"{columns['length'][-1]:,}",
            )
        )
    titles = (
        "average",
        f"loss at {_EARLY:.0%} of the steps",
        "at its last evaluation",
        "2TA, E, at that step",
        "least",
        "thesis, least",
        "iterates in the last",
    )
    return table(titles, rows)


def failing(curves: Mapping[str, Numbers]) -> str:
    """Returns losses, switches and resets of 2TA where its assumptions fail."""
    raw = curves["2TA"]["raw_loss"]
    rows: list[tuple[Any, ...]] = [
        (ITERATES, f"{min(raw):.3f}", f"{raw[-1]:.3f}", "", "")
    ]
    for name, columns in curves.items():
        events = [event for event in columns["event"] if event]
        rows.append(
            (
                name,
                f"{min(columns['loss']):.3f}",
                f"{columns['loss'][-1]:.3f}",
                sum("switch" in event for event in events),
                sum("empty" in event for event in events),
            )
        )
    titles = ("average", "least loss", "last loss", "switches", "averages emptied")
    return table(titles, rows)


def optimal_lengths(found: Numbers) -> str:
    """Returns how often Propositions 2 and 4 hold, and what 2TA loses."""
    optimal = [min(losses) for losses in found["losses"]]
    titles = (
        "2TA",
        "S below the optimum",
        "L < 2 optimum + E",
        "nearly optimal once between switches",
        "mean loss above the optimal length's",
        "without the first evaluation",
        "largest",
    )
    lines = []
    for name, bounds in found["bounds"].items():
        rows = found["two_tailed"][name]
        excess = [row["loss"] - best for row, best in zip(rows, optimal, strict=True)]
        lines.append(
            (
                f"algorithm {name}",
                f"{bounds['short_below_optimal']} of {bounds['evaluations']}",
                f"{bounds['long_below_twice']} of {bounds['evaluations']}",
                f"{bounds['intervals_nearly_optimal']} of {bounds['intervals']}",
                f"{np.mean(excess):.4f}",
                f"{np.mean(excess[1:]):.4f}" if excess[1:] else "",
                f"{np.max(excess):.4f}",
            )
        )
    return table(titles, lines)


def least_squares(found: Numbers) -> str:
    """Returns the excess losses of averages at three times."""
    shares = (0.01, 0.1, 1.0)
    at = [_index(found, share) for share in shares]
    return table(
        ["average, excess loss at", *[f"{share:.0%} of the steps" for share in shares]],
        [
            ["iterates" if name == "raw" else name, *[f"{losses[i]:.3g}" for i in at]]
            for name, losses in found["excess_loss"].items()
        ],
    )


def propositions(found: Numbers) -> str:
    """Returns what Propositions 3 and 5 to 7 say beside what is there."""
    runs, losses = found["runs"], found["excess_loss"]["2TA"]
    quarters = ", ".join(f"{value:.1f}" for value in found["switches_by_quarter"])
    mean, least = (found["length"][name][-1] for name in ("mean", "least"))
    seen = {
        3: f"a problem has {quarters} in the quarters of the run; "
        f"{found['runs_with_switches_in_every_quarter']} of {runs} have some in each",
        5: f"in {found['monotone_runs']} of {runs} problems",
        6: f"to {mean:,.0f} of {found['steps'][-1]:,} in the mean, {least:,.0f} at "
        "least",
        7: "the excess falls by a factor of "
        f"{losses[_index(found, 0.1)] / losses[-1]:.0f} from 10% to all of the steps",
    }
    return table(
        ("proposition", "says", "seen"),
        [(number, PROPOSITIONS[number], text) for number, text in seen.items()],
        left=range(3),
    )


def cost(found: Mapping[str, Numbers]) -> str:
    """Returns how long each part took, and on what."""
    rows = [
        (name, f"{numbers['seconds']:,.0f}", numbers["machine"])
        for name, numbers in found.items()
    ]
    total = sum(numbers["seconds"] for numbers in found.values())
    titles = ("part", "seconds", "machine")
    return table(titles, [*rows, ("all", f"{total:,.0f}", "")], left=(0, 2))


def _index(found: Numbers, share: float) -> int:
    """Returns where a share of the steps is done."""
    return int(np.searchsorted(found["steps"], share * found["steps"][-1]))
