"""Tables of the study on the toroidal grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.imm_reinforce import published
from experiments.imm_reinforce.exact import exact_returns
from experiments.kit.drawing import distinct, spread, table
from experiments.kit.grid_config import ARMS, FIXED

Numbers = dict[str, Any]


def tables(found: Mapping[str, Numbers]) -> dict[str, str]:
    """Returns the tables of the parts there are, by name."""
    makers = {
        "figure3": {
            "figure3": figure_3_table,
            "agreement": agreement,
            "gains": gains_table,
        },
        "search": {"search": search_table},
        "figure5": {"bounds": bounds_table},
    }
    return {
        name: make(found[part])
        for part, makers_of_part in makers.items()
        if part in found
        for name, make in makers_of_part.items()
    }


def published_spread(values: Sequence[float] | None) -> str:
    """Returns the same of published numbers: mean, 10th and 90th percentile."""
    if values is None:
        return "-"
    mean, low, high = values[:3]
    return f"{mean:.2f} [{low:.2f}, {high:.2f}]"


def figure_3_table(numbers: Numbers) -> str:
    """Returns mean return and percentiles by epochs and arm, the published beside."""
    cells = {(c["arm"], c["epochs"]): c["returns"] for c in numbers["cells"]}
    titles = ["epochs"]
    for arm in ARMS:
        titles += [arm, "published"]
    rows = []
    for epochs in numbers["config"]["epochs"]:
        row = [str(epochs)]
        for arm in ARMS:
            row.append(spread(cells[arm, epochs]))
            row.append(published_spread(published.FIGURE_3[arm].get(epochs)))
        rows.append([*row, spread(cells[FIXED, epochs])])
    return table([*titles, FIXED], rows)


def differences(numbers: Numbers) -> dict[tuple[str, int], float]:
    """Returns ours minus the published mean, in standard errors of the difference."""
    result = {}
    for cell in numbers["cells"]:
        theirs = published.FIGURE_3.get(cell["arm"], {}).get(cell["epochs"])
        values = np.array(cell["returns"])
        if theirs is None or len(values) < 2:
            continue
        variance = values.var(ddof=1) / len(values)
        variance += theirs[3] ** 2 / published.SEEDS
        difference = values.mean() - theirs[0]
        result[cell["arm"], cell["epochs"]] = float(difference / np.sqrt(variance))
    return result


def agreement(numbers: Numbers) -> str:
    """Returns how many cells are how far from the published ones."""
    by_cell = differences(numbers)
    if not by_cell:
        return "No cell can be compared with a published one."
    distances = np.abs([*by_cell.values()])
    beyond = [
        f"{arm} at {epochs} epochs ({by_cell[arm, epochs]:+.1f})"
        for arm, epochs in by_cell
        if abs(by_cell[arm, epochs]) > 2
    ]
    root_mean_square = np.sqrt(np.mean(distances**2))
    return (
        "Cells that differ from the published mean by more than two standard errors of "
        f"the difference: {int((distances > 2).sum())} of {len(distances)}, by more "
        f"than three: {int((distances > 3).sum())}; the largest is "
        f"{distances.max():.1f}, the root mean square {root_mean_square:.2f}"
        f"{'. Beyond two: ' + ', '.join(beyond) if beyond else ''}."
    )


def gains_table(numbers: Numbers) -> str:
    """Returns what IMM adds to the mean return, with errors, by epochs and arm."""
    cells = {(c["arm"], c["epochs"]): c["returns"] for c in numbers["cells"]}
    arms = [arm for arm in (*ARMS, FIXED) if arm != "none"]
    rows = []
    for epochs in numbers["config"]["epochs"]:
        row = [str(epochs)]
        for arm in arms:
            # A seed has the same initial weights and draws in all arms.
            paired = np.subtract(cells[arm, epochs], cells["none", epochs])
            error = np.std(paired, ddof=1) / np.sqrt(len(paired))
            row.append(f"{paired.mean():+.2f} ± {error:.2f}")
            if arm in published.FIGURE_3:
                row.append(_published_gain(arm, epochs))
        rows.append(row)
    titles = ["epochs"]
    for arm in arms:
        titles += [arm, "published"] if arm in published.FIGURE_3 else [arm]
    return table(titles, rows)


def _published_gain(arm: str, epochs: int) -> str:
    helped, plain = (published.FIGURE_3[name].get(epochs) for name in (arm, "none"))
    if helped is None or plain is None:
        return "-"
    return f"{helped[0] - plain[0]:+.2f}"


def bounds_table(numbers: Numbers) -> str:
    """Returns exact returns of policies that are not trained."""
    horizon = numbers["config"]["horizon"]
    exact = exact_returns(numbers["rewards"], horizon)
    rows = [
        ("moves at random", f"{exact.uniform:.2f}"),
        ("the POMDP's solution alone, max-utility", f"{exact.restricted:.2f}"),
        ("the best policy", f"{exact.optimal:.2f}"),
    ]
    return table(("policy", f"mean return of {horizon} steps"), rows)


def search_table(numbers: Numbers) -> str:
    """Returns mean return and percentiles by ratio and epochs, the published beside."""
    cells = {(c["ratio"], c["epochs"]): c["returns"] for c in numbers["cells"]}
    counts = numbers["config"]["search_epochs"]
    titles = ["ratio"]
    for epochs in counts:
        titles += [f"{epochs} epochs", "published"]
    rows = []
    for ratio in distinct(cell["ratio"] for cell in numbers["cells"]):
        row = [str(ratio)]
        for epochs in counts:
            row.append(spread(cells[ratio, epochs]))
            row.append(published_spread(published.SEARCH[ratio].get(epochs)))
        rows.append(row)
    return table(titles, rows)
