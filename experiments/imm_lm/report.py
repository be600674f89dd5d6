"""Tables and figures from rows of results."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

Row = dict[str, Any]
# What a row must have to be reported.
NEEDS = (
    "name",
    "config.arm",
    "config.fraction",
    "config.epochs",
    "corpus.name",
    "corpus.train_tokens",
    "perplexity.valid",
    "perplexity.test",
    "interpolation.same.valid",
    "interpolation.same.test",
    "restricted_perplexity.same",
    "induced_perplexity.valid",
    "induced_perplexity.test",
    "parameters",
    "machine",
    "curve",
)

# Settings that mean something for some arms only.
_SETTINGS_OF = {
    "imm-": ("restricted_text", "coefficient"),
    "imm-in-batch": (
        "min_count",
        "pass_mode",
        "separate_clipping",
        "bank_size",
        "bank_target",
    ),
    "imm-sampled": ("k", "every", "gradient", "variant"),
    "noising": ("gamma0",),
}

# Two readable, colour-blind-safe hues an arm family; the rest fall back to the cycle.
_COLOURS = {
    "none": "#4c4c4c",
    "noising-bigram-kn": "#e69f00",
    "noising-bigram-kn-dropout-0.4": "#b8860b",
    "imm-in-batch": "#0072b2",
    "imm-in-batch-count1": "#56b4e9",
    "imm-in-batch-all": "#009e73",
    "imm-sampled": "#cc79a7",
    "interpolation": "#d55e00",
    "imm-sampled-k1-every1": "#f0a3b5",
    "imm-sampled-k10-every5": "#cc79a7",
    "imm-sampled-k10-every1": "#882255",
}


def group_of(name: str) -> str:
    """Returns a run's name without its seed."""
    return re.sub(r"-seed\d+$", "", name)


def grouped(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Returns the rows of each group, groups in the order of their first row."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(group_of(row["name"]), []).append(row)
    return groups


def spread(values: Sequence[float | None]) -> str:
    """Returns `mean +/- standard deviation`, or the one value there is."""
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    if len(known) == 1:
        return f"{known[0]:.2f}"
    return f"{np.mean(known):.2f} ± {np.std(known, ddof=1):.2f}"


def number(value: float | None) -> float:
    """Returns a number of a row; rows write null for what is not finite."""
    return float("nan") if value is None else float(value)


def perplexity_table(rows: Sequence[Row]) -> str:
    """Returns a Markdown table: one line a group, mean and spread over seeds."""
    sources = {"same": "mixed with P_hat"}
    if any(row["config"]["fraction"] < 1 for row in rows):
        sources["all"] = "mixed with P_hat of all text"
    mixed = [f"{label}: valid | test | mu" for label in sources.values()]
    columns = ["seeds", "valid", "test", *mixed, "ms/step"]
    lines = [
        f"| arm | {' | '.join(columns)} |",
        f"| --- |{' ---: |' * (4 + 3 * len(sources))}",
    ]
    for name, members in grouped(rows).items():
        cells = [
            name,
            str(len(members)),
            spread([row["perplexity"]["valid"] for row in members]),
            spread([row["perplexity"]["test"] for row in members]),
            *[
                spread([row["interpolation"][source][key] for row in members])
                for source in sources
                for key in ("valid", "test", "mu")
            ],
            spread([row.get("step_ms") for row in members]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def induced_table(rows: Sequence[Row]) -> str:
    """Returns Table 1 of the paper for these models: perplexity on the bigram task.

    Left out are tokens whose short context the training text lacks; for Kneser-Ney,
    those it thinks impossible.
    """
    lines = [
        "| model | train | valid | test | left out (valid / test) |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, members in grouped(rows).items():
        induced = [row["induced_perplexity"] for row in members]
        left_out = " / ".join(
            str(induced[0][text]["left_out"]) for text in ("valid", "test")
        )
        cells = [name]
        for text in ("train", "valid", "test"):
            cells.append(spread([each[text]["perplexity"] for each in induced]))
        lines.append(f"| {' | '.join([*cells, left_out])} |")
    fractions = {row["config"]["fraction"] for row in rows}
    if len(fractions) == 1:
        sources = ("same",) if fractions == {1.0} else ("same", "all")
        lines += [_kneser_ney_line(rows[0], source) for source in sources]
    return "\n".join(lines)


def _kneser_ney_line(row: Row, source: str) -> str:
    known = row["restricted_perplexity"][source]
    perplexities = [
        f"{known[text]['perplexity']:.2f}" if text in known else "-"
        for text in ("train", "valid", "test")
    ]
    impossible = " / ".join(
        str(known[text]["impossible"]) for text in ("valid", "test")
    )
    name = f"Kneser-Ney of {'all' if source == 'all' else 'the same'} text"
    return f"| {' | '.join([name, *perplexities, impossible])} |"


def rates_line(rows: Sequence[Row]) -> str:
    """Returns the learning rates with which training ended.

    Where they differ, some runs are further on than others.
    """
    texts = []
    for name, members in grouped(rows).items():
        rates = [row["curve"][-1].get("learning_rate", float("nan")) for row in members]
        low, high = f"{min(rates):.2g}", f"{max(rates):.2g}"
        texts.append(f"{name} {low if low == high else f'{low} to {high}'}")
    return f"Learning rate of the last epoch: {', '.join(texts)}."


def provenance(rows: Sequence[Row]) -> str:
    """Returns a sentence on the models, the machine and the code behind rows."""
    parameters = sorted({row["parameters"] for row in rows})
    commits = sorted({row.get("commit") or "unknown" for row in rows})
    others = [row["other_cores"] for row in rows if row.get("other_cores") is not None]
    busy = f"; other programs used {max(others):.1f} cores at most" if others else ""
    commands = sum("command" in row for row in rows)
    every = "Every row holds" if commands == len(rows) else f"{commands} rows hold"
    return (
        f"Parameters: {', '.join(f'{n:,}' for n in parameters)}. Machine: "
        f"{', '.join(sorted({row['machine'] for row in rows}))}{busy}. Commits: "
        f"{', '.join(commits)}. {every} the command."
    )


def _matters(key: str, arm: str) -> bool:
    owners = [owner for owner, keys in _SETTINGS_OF.items() if key in keys]
    return not owners or any(arm.startswith(owner) for owner in owners)


def settings_table(rows: Sequence[Row]) -> str:
    """Returns a Markdown table of the settings in which the rows differ.

    `coverage` is the share of the positions with a whole short context that are in the
    in-batch IMM term; `lambda / coverage` compares their weights in it (with contexts
    of one word, the main loss of a position has weight 1).
    """
    keys = [
        key
        for key in rows[0]["config"]
        if len({str(row["config"][key]) for row in rows}) > 1
    ]
    lines = [
        f"| run | {' | '.join(keys)} | coverage | lambda / coverage | valid | test |",
        f"| --- | {' | '.join('---' for _ in keys)} | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        arm = row["config"]["arm"]
        cells = [str(row["config"][key]) if _matters(key, arm) else "" for key in keys]
        both = [spread([row["perplexity"][text]]) for text in ("valid", "test")]
        matched = ["", ""]
        coverage = row["curve"][-1].get("imm_coverage")
        if coverage and arm == "imm-in-batch":
            weight = row["config"]["coefficient"] / coverage
            matched = [f"{coverage:.2f}", f"{weight:.2f}"]
        lines.append(f"| {row['name']} | {' | '.join([*cells, *matched, *both])} |")
    return "\n".join(lines)


def counts_table(rows: Sequence[Row]) -> str:
    """Returns a Markdown table of how many predictions positions have, for each bank.

    Counted over an epoch that starts with an empty bank, for the restricted models'
    short contexts.
    """
    lines = [
        "| bank | filled up to | mean | alone | below 5 | 10 % | 25 % | 50 % | 75 % "
        "| 90 % |",
        f"| ---: {'| ---: ' * 9}|",
    ]
    distributions = {}
    for row in rows:
        size, target = row["config"]["bank_size"], 0
        if size:
            target = row["config"]["bank_target"] or row["config"]["min_count"]
        if row["effective_counts"]:
            distributions[size, target] = row["effective_counts"]
    for (size, target), counts in sorted(distributions.items()):
        shares = [f"{counts[key]:.2f}" for key in ("share_alone", "share_below_5")]
        quantiles = [f"{value:g}" for value in counts["quantiles"].values()]
        numbers = [f"{size:,}", str(target), f"{counts['mean']:.1f}"]
        lines.append(f"| {' | '.join([*numbers, *shares, *quantiles])} |")
    return "\n".join(lines)


def learning_curves(rows: Sequence[Row], path: pathlib.Path, title: str) -> bool:
    """Writes a figure of validation perplexity against epochs.

    Interpolation is left out: it is not trained, its curve would be that of the model
    before it is mixed.

    Returns:
        Whether there was anything to draw.
    """
    rows = [row for row in rows if row["config"]["arm"] != "interpolation"]
    if not rows:
        return False
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.2, 4.4), layout="constrained")
    draw_learning_curves(axes, rows)
    axes.set_title(title, fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return True


def draw_learning_curves(axes: Any, rows: Sequence[Row]) -> None:
    """Draws a line an arm, the mean over seeds, and a band of their range.

    Arms that never reached a finite perplexity are left out.
    """
    from matplotlib import ticker

    lowest, longest, starts = np.inf, 1, []
    for name, members in grouped(rows).items():
        # Reloading the best weights makes the best so far the model that is kept.
        curves = [
            np.fmin.accumulate([number(p["val_perplexity"]) for p in row["curve"]])
            for row in members
        ]
        length = min(len(curve) for curve in curves)
        longest = max(longest, length)
        stacked = np.array([curve[:length] for curve in curves])
        mean = stacked.mean(axis=0)
        if not np.isfinite(mean).any():
            continue
        epochs = np.arange(1, length + 1)
        colour = colour_of(name)
        label = f"{name}, {mean[-1]:.1f} in the end"
        (line,) = axes.plot(epochs, mean, label=label, color=colour, linewidth=1.8)
        if len(curves) > 1:
            low, high = stacked.min(axis=0), stacked.max(axis=0)
            axes.fill_between(
                epochs, low, high, color=line.get_color(), alpha=0.2, linewidth=0
            )
        lowest = min(lowest, np.nanmin(mean))
        # The best so far never rises: its first value is its largest.
        starts.append(np.nanmax(mean[length // 6 :]))
    if starts:
        axes.set_ylim(lowest * 0.97, max(starts) * 1.05)
    axes.set_xlim(0, 1.02 * longest)
    axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    axes.set_xlabel("epoch")
    axes.set_ylabel("validation perplexity (best so far)")
    axes.grid(alpha=0.25)
    if starts:
        axes.legend(frameon=False, fontsize=8)


def colour_of(name: str) -> str | None:
    """Returns the colour of an arm in every figure, or None for the next free one."""
    without_part = re.sub(r"-\d+th$", "", name)
    return _COLOURS.get(without_part)
