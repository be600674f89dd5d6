"""Tables of the study of logistic regression."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.imm_logistic import published
from experiments.imm_logistic.gains import (
    best_ratio,
    equivalent_sizes,
    fit_line,
    gain,
    restricted_accuracy,
)
from experiments.kit.drawing import distinct, spread, table

Numbers = dict[str, Any]

_PARAMETERS = 4
# Of a longer Figure 2, sizes that its table shows.
_SHOWN = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50)


def tables(found: Mapping[str, Numbers]) -> dict[str, str]:
    """Returns the tables of the parts there are, by name."""
    makers = {
        "figure1": {"figure1": figure_1},
        "figure2": {"figure2": figure_2, "claims": claims},
        "figure4": {"figure4": sweep},
        "rule": {"sweep": sweep, "rule": rule},
        "tuning": {"tuning": tuning},
        "choices": {"choices": choices, "wide": wide_choices},
    }
    return {
        name: make(found[part])
        for part, makers_of_part in makers.items()
        if part in found
        for name, make in makers_of_part.items()
    }


def figure_1(numbers: Numbers) -> str:
    """Returns IMM(Q) and accuracy by ratio, and the entropy of P_hat."""
    rows = [
        (
            cell["ratio"],
            spread(cell["imm_risk"], 3),
            f"{np.std(cell['imm_risk'], ddof=1):.3f}",
            spread(cell["accuracy"], 3),
        )
        for cell in numbers["cells"]
    ]
    entropy = numbers["entropy_of_target"]
    rows.append(
        (
            "P_hat itself",
            spread(entropy, 3),
            f"{np.std(entropy, ddof=1):.3f}",
            f"{restricted_accuracy(numbers['config']):.3f}",
        )
    )
    return table(("ratio", "IMM(Q)", "standard deviation", "test accuracy"), rows)


def figure_2_means(numbers: Numbers) -> dict[str, np.ndarray]:
    """Returns each arm's mean accuracy at every size; noising at its best ratio."""
    arms: dict[str, list[float]] = {
        name: [] for name in ("none", "imm", "interpolation", "noising")
    }
    for cell in numbers["cells"]:
        values = cell["accuracies"] | {"noising": _best_noising(cell)[1]}
        for name, means in arms.items():
            means.append(float(np.mean(values[name])))
    return {name: np.array(values) for name, values in arms.items()}


def figure_2(numbers: Numbers) -> str:
    """Returns accuracies by size and arm; of many sizes, some."""
    cells = numbers["cells"]
    if len(cells) > len(_SHOWN):
        cells = [cell for cell in cells if cell["size"] in _SHOWN]
    rows = []
    for cell in cells:
        values = cell["accuracies"]
        name, noising = _best_noising(cell)
        rows.append(
            (
                cell["size"],
                f"{cell['ratio']:.3f}",
                spread(values["none"], 3),
                spread(values["imm"], 3),
                _gain_text(values, 4),
                spread(values["interpolation"], 3),
                f"{cell['mu']:.2f}",
                spread(noising, 3),
                name.removeprefix("noising "),
            )
        )
    titles = (
        "n",
        "ratio",
        "none",
        "imm",
        "gain ± standard error",
        "interpolation",
        "mu",
        "noising",
        "its ratio",
    )
    return table(titles, rows)


def claims(numbers: Numbers) -> str:
    """Returns the paper's claims on Figure 2, and ours, as numbers."""
    cells = numbers["cells"]
    sizes = np.array([cell["size"] for cell in cells])
    means = figure_2_means(numbers)
    gains, errors = np.transpose([gain(cell["accuracies"]) for cell in cells])
    widths = {
        arm: np.array(
            [np.ptp(np.percentile(cell["accuracies"][arm], [10, 90])) for cell in cells]
        )
        for arm in ("none", "imm")
    }
    top = int(gains.argmax())
    within = ", ".join(map(str, sizes[gains >= gains.max() / 2]))
    alone = restricted_accuracy(numbers["config"])

    def at(better: np.ndarray) -> str:
        return f"at {int(np.sum(better))} of {len(sizes)} sizes"

    said = {
        "IMM is better on average": (
            f"{at(gains > 0)}, by more than two standard errors at "
            f"{int((gains > 2 * errors).sum())}"
        ),
        "the spread is smaller with IMM": (
            f"{at(widths['imm'] < widths['none'])}; its mean is "
            f"{widths['imm'].mean():.3f} against {widths['none'].mean():.3f}"
        ),
        "where the gain is largest": (
            f"at n = {sizes[top]} ({gains[top]:+.3f}), at least half of that at n = "
            f"{within}; the model has {_PARAMETERS} parameters"
        ),
        "the gain is worth, in data": _worth(extra_data([*sizes], means)),
        "IMM is better than noising with the best ratio in hindsight": at(
            means["imm"] > means["noising"]
        ),
        "IMM is better than interpolation": at(means["imm"] > means["interpolation"]),
        f"IMM is better than P_hat alone, {alone:.3f}": at(means["imm"] > alone),
        f"no IMM is better than P_hat alone, {alone:.3f}": at(means["none"] > alone),
    }
    rows = [
        (claim, published.CLAIMS.get(claim, "-"), ours) for claim, ours in said.items()
    ]
    return table(("claim", "the paper", "here"), rows, left=range(3))


def extra_data(sizes: Sequence[int], means: Mapping[str, np.ndarray]) -> np.ndarray:
    """Returns how many percent more data IMM is worth, where that can be told.

    Args:
        sizes: n, increasing.
        means: Mean accuracies at each, by arm.
    """
    worth = equivalent_sizes(sizes, [*means["none"]], [*means["imm"]])
    worth = worth / np.asarray(sizes)
    return 100 * (worth[np.isfinite(worth)] - 1)


def _worth(extra: np.ndarray) -> str:
    if not len(extra):
        return "-"
    return (
        f"{extra.mean():.0f} % more on average over the {len(extra)} sizes at which "
        f"the curve without IMM reaches as far (median {np.median(extra):.0f} %)"
    )


def sweep(numbers: Numbers) -> str:
    """Returns mean accuracies by learning rate, size and ratio."""
    cells = numbers["cells"]
    rows = [
        (rate, size, *[f"{np.mean(each):.3f}" for each in values.values()])
        for rate, size, values in sweeps(cells)
    ]
    ratios = sorted({cell["ratio"] for cell in cells})
    return table(("learning rate", "n", *[f"r = {r}" for r in ratios]), rows)


def sweeps(
    cells: Sequence[Mapping[str, Any]],
) -> list[tuple[float, int, dict[float, list[float]]]]:
    """Returns learning rate, size, and accuracies by ratio, all sorted."""
    return [
        (
            rate,
            size,
            {
                cell["ratio"]: cell["accuracy"]
                for cell in sorted(cells, key=lambda cell: cell["ratio"])
                if cell["learning_rate"] == rate and cell["size"] == size
            },
        )
        for rate in sorted({cell["learning_rate"] for cell in cells})
        for size in sorted({cell["size"] for cell in cells})
    ]


def rule(numbers: Numbers) -> str:
    """Returns the best ratios by size and the line through them, the paper's first."""
    found: dict[float, dict[int, float]] = {}
    for rate, size, values in sweeps(numbers["cells"]):
        means = [float(np.mean(each)) for each in values.values()]
        found.setdefault(rate, {})[size] = best_ratio([*values], means)
    sizes = distinct(size for best in found.values() for size in best)
    rows = [_rule_row("the paper", published.BEST_RATIOS, sizes, published.RULE)]
    for rate, best in found.items():
        line = fit_line([*best], [*best.values()]) if len(best) > 1 else None
        rows.append(_rule_row(f"rate {rate}", best, sizes, line))
    titles = ("best ratios", *[f"n = {size}" for size in sizes], "line")
    return table(titles, rows, left=(0, len(titles) - 1))


def _rule_row(
    name: str,
    best: Mapping[int, float],
    sizes: Sequence[int],
    line: tuple[float, float] | None,
) -> tuple[str, ...]:
    ratios = [f"{best[size]:.2f}" if size in best else "-" for size in sizes]
    return (name, *ratios, f"{line[0]:+.4f} n + {line[1]:.3f}" if line else "-")


def tuning(numbers: Numbers) -> str:
    """Returns what cross-validation chooses, and what that is worth."""
    rows = []
    for cell in numbers["cells"]:
        for arm, values in cell["accuracies"].items():
            chosen = "-"
            if arm.endswith("cross-validated"):
                chosen = (
                    f"{np.mean(cell['ratios']):.2f} / "
                    f"{np.median(cell['inverse_bandwidths']):g}"
                )
            elif arm.endswith("all data sets"):
                pooled = cell["pooled"]
                chosen = f"{pooled['ratio']:g} / {pooled['inverse_bandwidth']:g}"
            rows.append((cell["size"], arm, spread(values, 3), chosen))
    titles = ("n", "arm", "test accuracy", "ratio (mean) / alpha (median)")
    return table(titles, rows, left=(0, 1))


def choices(numbers: Numbers) -> str:
    """Returns accuracies on other tasks whose features are at most 1."""
    return _choices(cell for cell in numbers["cells"] if not _is_wide(cell))


def wide_choices(numbers: Numbers) -> str:
    """Returns accuracies on the tasks whose features are larger."""
    return _choices(cell for cell in numbers["cells"] if _is_wide(cell))


def _is_wide(cell: Mapping[str, Any]) -> bool:
    return cell["definition"]["high"] > 1


def _choices(cells: Iterable[Mapping[str, Any]]) -> str:
    arms = ("none", "imm", "imm, fitted P_hat")
    rows = [
        (
            cell["task"],
            cell["size"],
            f"{restricted_accuracy(cell['definition']):.3f}",
            *[spread(cell["accuracies"][arm], 3) for arm in arms],
            _gain_text(cell["accuracies"], 3),
        )
        for cell in cells
    ]
    return table(("task", "n", "P_hat alone", *arms, "gain ± standard error"), rows)


def _best_noising(cell: Mapping[str, Any]) -> tuple[str, list[float]]:
    """Returns the noising arm that is best on average, and its accuracies."""
    arms = {
        name: values
        for name, values in cell["accuracies"].items()
        if name.startswith("noising")
    }
    best = max(arms, key=lambda name: np.mean(arms[name]))
    return best, arms[best]


def _gain_text(accuracies: Mapping[str, Sequence[float]], digits: int) -> str:
    mean, error = gain(accuracies)
    return f"{mean:+.{digits}f} ± {error:.{digits}f}"
