"""Tables and figures of the study of logistic regression."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from experiments.imm_logistic.gains import (
    best_ratio,
    equivalent_sizes,
    fit_line,
)
from experiments.imm_logistic.study import RATIOS
from experiments.kit.drawing import (
    percentile_bars,
    save,
    spread,
    table,
)

Numbers = dict[str, Any]

_COLOURS = {
    "none": "#8b1a1a",
    "imm": "#2e7d32",
    "interpolation": "#e69f00",
    "noising": "#0072b2",
}
_PARAMETERS = 4


def report(found: Mapping[str, Numbers], folder: pathlib.Path) -> str:
    """Draws what there is into a folder; returns the tables as Markdown."""
    texts = []
    for name, describe in _PARTS.items():
        if name in found:
            texts.append(describe(found[name], folder))
    return "\n\n".join(texts) + "\n"


def _figure_1(numbers: Numbers, folder: pathlib.Path) -> str:
    cells = numbers["cells"]
    figure, axes = plt.subplots(figsize=(5.5, 3.8), layout="constrained")
    percentile_bars(
        axes, RATIOS, [cell["imm_risk"] for cell in cells], _COLOURS["imm"], "Q"
    )
    entropy = float(np.mean(numbers["entropy_of_target"]))
    axes.axhline(entropy, color="black", ls=":", label="P_hat")
    axes.set_xlabel("lambda / (1 + lambda)")
    axes.set_ylabel("IMM(Q) per example, nats")
    save(figure, folder / "imm_logistic_figure1.png")
    rows = [
        (
            cell["ratio"],
            spread(cell["imm_risk"], 3),
            f"{np.std(cell['imm_risk'], ddof=1):.3f}",
            spread(cell["accuracy"], 3),
        )
        for cell in cells
    ]
    titles = ("ratio", "IMM(Q)", "standard deviation", "test accuracy")
    size, runs = (numbers["config"][key] for key in ("figure1_size", "figure1_runs"))
    return (
        f"{table(titles, rows)}\n\nn = {size}, {runs} runs; mean [10th, 90th "
        f"percentile]. IMM(Q) of P_hat itself, its entropy: {entropy:.3f}."
    )


def figure_2_means(numbers: Numbers) -> dict[str, np.ndarray]:
    """Returns each arm's mean accuracy at every size; noising at its best ratio."""
    cells = numbers["cells"]
    arms: dict[str, list[float]] = {
        name: [] for name in ("none", "imm", "interpolation", "noising")
    }
    for cell in cells:
        means = {name: np.mean(values) for name, values in cell["accuracies"].items()}
        for name in ("none", "imm", "interpolation"):
            arms[name].append(means[name])
        noising = [means[name] for name in means if name.startswith("noising")]
        arms["noising"].append(max(noising))
    return {name: np.array(values) for name, values in arms.items()}


def _figure_2(numbers: Numbers, folder: pathlib.Path) -> str:
    cells = numbers["cells"]
    sizes = [cell["size"] for cell in cells]
    means = figure_2_means(numbers)
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for arm in ("none", "imm"):
        values = [cell["accuracies"][arm] for cell in cells]
        percentile_bars(axes, sizes, values, _COLOURS[arm], arm)
    for arm in ("interpolation", "noising"):
        label = "noising, best ratio" if arm == "noising" else arm
        axes.plot(sizes, means[arm], "--", color=_COLOURS[arm], lw=1, label=label)
    axes.set_xlabel("n, examples")
    axes.set_ylabel("test accuracy")
    save(figure, folder / "imm_logistic_figure2.png")
    rows = []
    for cell in cells:
        values = cell["accuracies"]
        noising = {
            name: np.mean(accuracies)
            for name, accuracies in values.items()
            if name.startswith("noising")
        }
        best = max(noising, key=lambda name: noising[name])
        rows.append(
            (
                cell["size"],
                f"{cell['ratio']:.3f}",
                spread(values["none"], 3),
                spread(values["imm"], 3),
                spread(values["interpolation"], 3),
                f"{cell['mu']:.2f}",
                spread(values[best], 3),
                best.removeprefix("noising "),
            )
        )
    titles = (
        "n",
        "ratio",
        "none",
        "imm",
        "interpolation",
        "mu",
        "noising",
        "its ratio",
    )
    return f"{table(titles, rows)}\n\n{claims(numbers)}"


def claims(numbers: Numbers) -> str:
    """Returns the paper's claims on Figure 2 as numbers."""
    cells = numbers["cells"]
    sizes = np.array([cell["size"] for cell in cells])
    means = figure_2_means(numbers)
    gains = means["imm"] - means["none"]
    errors = np.array(
        [
            np.std(
                np.subtract(cell["accuracies"]["imm"], cell["accuracies"]["none"]),
                ddof=1,
            )
            / np.sqrt(len(cell["accuracies"]["imm"]))
            for cell in cells
        ]
    )
    widths = {
        arm: np.array(
            [np.ptp(np.percentile(cell["accuracies"][arm], [10, 90])) for cell in cells]
        )
        for arm in ("none", "imm")
    }
    worth = equivalent_sizes(list(sizes), list(means["none"]), list(means["imm"]))
    extra = worth / sizes - 1
    known = np.isfinite(extra)
    top = int(gains.argmax())
    within = sizes[gains >= gains.max() / 2].tolist()
    lines = [
        f"IMM is better on average at {int((gains > 0).sum())} of {len(sizes)} sizes, "
        f"by more than two standard errors at {int((gains > 2 * errors).sum())}.",
        f"The spread (10th to 90th percentile) is smaller with IMM at "
        f"{int((widths['imm'] < widths['none']).sum())} sizes; its mean is "
        f"{widths['imm'].mean():.3f} against {widths['none'].mean():.3f}.",
        f"The gain is largest at n = {sizes[top]} ({gains[top]:+.3f}) and at least "
        f"half of that at n = {', '.join(map(str, within))}; the model has "
        f"{_PARAMETERS} parameters.",
    ]
    lines += [
        f"IMM is better on average than {name} at "
        f"{int((means['imm'] > means[arm]).sum())} sizes."
        for arm, name in (
            ("noising", "noising with the best ratio in hindsight"),
            ("interpolation", "interpolation"),
        )
    ]
    if known.any():
        lines.append(
            f"The gain is worth {100 * extra[known].mean():.0f} % more data on average "
            f"over the {int(known.sum())} sizes at which the curve without IMM reaches "
            f"as far (median {100 * np.median(extra[known]):.0f} %; the paper: about "
            "30 %)."
        )
    return "\n".join(f"- {line}" for line in lines)


def _figure_4(numbers: Numbers, folder: pathlib.Path) -> str:
    cells = numbers["cells"]
    rates = sorted({cell["learning_rate"] for cell in cells})
    figure, panels = plt.subplots(
        1, len(rates), figsize=(5 * len(rates), 4), layout="constrained", squeeze=False
    )
    for axes, rate in zip(panels[0], rates, strict=True):
        for number, size in enumerate(sorted({cell["size"] for cell in cells})):
            values = _by_ratio(cells, rate, size)
            percentile_bars(axes, RATIOS, values, f"C{number}", f"n = {size}", lw=0.8)
        axes.set_title(f"learning rate {rate}")
        axes.set_xlabel("lambda / (1 + lambda)")
        axes.set_ylabel("test accuracy")
    save(figure, folder / "imm_logistic_figure4.png")
    return _sweep_table(numbers)


def _rule(numbers: Numbers, folder: pathlib.Path) -> str:
    del folder
    cells = numbers["cells"]
    sizes = sorted({cell["size"] for cell in cells})
    lines = []
    for rate in sorted({cell["learning_rate"] for cell in cells}):
        best = []
        for size in sizes:
            means = [float(np.mean(each)) for each in _by_ratio(cells, rate, size)]
            best.append(best_ratio(RATIOS, means))
        text = ", ".join(f"{r:.2f} at {n}" for r, n in zip(best, sizes, strict=True))
        line = f"- Learning rate {rate}, best ratios: {text}"
        if len(sizes) > 1:
            slope, intercept = fit_line(sizes, best)
            line += f"; the line through them is {slope:+.4f} n + {intercept:.3f}"
        lines.append(line)
    return (
        f"{_sweep_table(numbers)}\n\n{numbers['config']['rule_runs']} runs; the "
        "paper's rule: -0.0111 n + 0.818.\n\n" + "\n".join(lines)
    )


def _tuning(numbers: Numbers, folder: pathlib.Path) -> str:
    del folder
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
    return table(titles, rows)


def _choices(numbers: Numbers, folder: pathlib.Path) -> str:
    del folder
    rows = []
    for cell in numbers["cells"]:
        values = cell["accuracies"]
        gain = np.subtract(values["imm"], values["none"])
        error = np.std(gain, ddof=1) / np.sqrt(len(gain))
        rows.append(
            (
                cell["task"],
                cell["size"],
                *[spread(values[arm], 3) for arm in values],
                f"{gain.mean():+.3f} ± {error:.3f}",
            )
        )
    arms = [*numbers["cells"][0]["accuracies"]]
    return table(("task", "n", *arms, "gain ± standard error"), rows)


_PARTS = {
    "figure1": _figure_1,
    "figure2": _figure_2,
    "figure4": _figure_4,
    "rule": _rule,
    "tuning": _tuning,
    "choices": _choices,
}


def _by_ratio(
    cells: Sequence[Mapping[str, Any]], rate: float, size: int
) -> list[list[float]]:
    wanted = {
        cell["ratio"]: cell["accuracy"]
        for cell in cells
        if cell["learning_rate"] == rate and cell["size"] == size
    }
    return [wanted[ratio] for ratio in RATIOS]


def _sweep_table(numbers: Numbers) -> str:
    cells = numbers["cells"]
    rows = []
    for rate in sorted({cell["learning_rate"] for cell in cells}):
        for size in sorted({cell["size"] for cell in cells}):
            values = _by_ratio(cells, rate, size)
            rows.append((rate, size, *[f"{np.mean(each):.3f}" for each in values]))
    return table(("learning rate", "n", *[f"r = {r}" for r in RATIOS]), rows)
