"""Tables of settings that were tried: trials of the tuning, and the parts of IMM."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from experiments.imm_lm.config import RunConfig
from experiments.imm_lm.report import Row, number, spread
from experiments.imm_lm.studies import TUNED, arm_config
from experiments.kit.drawing import table

_TEXTS = ("valid", "test")


def tuning_table(rows: Sequence[Row]) -> str:
    """Returns a Markdown table of the trials: perplexities (valid / test), by arm.

    The trial that became the arm's settings is bold. Arm `interpolation` has the trials
    of arm `none`, mixed with P_hat.
    """
    columns: dict[str, dict[str, str]] = {}
    for row in rows:
        arm, _, trial = row["name"].partition("-trial")
        for column in (arm, "interpolation") if arm == "none" else (arm,):
            columns.setdefault(column, {})[trial] = _trial(column, row)
    trials = sorted({trial for cells in columns.values() for trial in cells})
    lines = [
        (trial, *(cells.get(trial, "") for cells in columns.values()))
        for trial in trials
    ]
    return table(("trial", *columns), lines, left=range(1, len(columns) + 1))


def _trial(arm: str, row: Row) -> str:
    config = RunConfig(**row["config"])
    found = row["perplexity"]
    if arm == "interpolation":
        config = dataclasses.replace(config, arm=arm)
        found = row["interpolation"]["same"]
    always = ["dropout"]
    if config.arm.startswith("imm-"):
        always.append("coefficient")
    if config.arm.startswith("noising-"):
        always.append("gamma0")
    values = " / ".join(spread([found[text]]) for text in _TEXTS)
    cell = f"{settings(config, RunConfig(), always)}: {values}"
    return f"**{cell}**" if _chosen(arm, config) else cell


def _chosen(arm: str, config: RunConfig) -> bool:
    if arm not in TUNED:
        return False
    tuned = arm_config(RunConfig(), arm)
    return all(getattr(config, key) == getattr(tuned, key) for key in _WORDS)


def ablation_table(rows: Sequence[Row]) -> str:
    """Returns a Markdown table of what each row changes in the row `reference`.

    `coverage` is the share of the positions with a whole short context that are in the
    in-batch IMM term; `lambda / coverage` compares their weights in it (with contexts
    of one word, the main loss of a position has weight 1). The least perplexities are
    bold.
    """
    named = {row["name"]: RunConfig(**row["config"]) for row in rows}
    reference = named.get("reference", RunConfig())
    least = {
        text: np.nanmin([number(row["perplexity"][text]) for row in rows])
        for text in _TEXTS
    }
    lines = []
    for row in rows:
        coverage = row["curve"][-1].get("imm_coverage")
        weights = ["", ""]
        if coverage:
            weight = row["config"]["coefficient"] / coverage
            weights = [f"{coverage:.2f}", f"{weight:.2f}"]
        both = []
        for text in _TEXTS:
            value = row["perplexity"][text]
            cell = spread([value])
            both.append(f"**{cell}**" if value == least[text] else cell)
        changed = settings(named[row["name"]], reference) or "nothing"
        lines.append((changed, *weights, *both))
    return table(("changed", "coverage", "lambda / coverage", *_TEXTS), lines)


def _bank(size: int) -> str:
    return f"bank of {size:,}" if size else "no bank"


# What a setting is called, where it is not what it usually is.
_WORDS: dict[str, Any] = {
    "dropout": "dropout {:g}".format,
    "gamma0": "gamma0 {:g}".format,
    "coefficient": "lambda {:g}".format,
    "bank_size": _bank,
    "bank_target": lambda count: f"contexts filled up to {count}" if count else "",
    "min_count": "`min_count` {}".format,
    "pass_mode": "{} pass".format,
    "separate_clipping": lambda separate: "separate clipping" if separate else "",
}


def settings(
    config: RunConfig, reference: RunConfig, always: Iterable[str] = ()
) -> str:
    """Returns the settings that differ from a reference, and some others, in words."""
    said = (
        say(getattr(config, name))
        for name, say in _WORDS.items()
        if name in always or getattr(config, name) != getattr(reference, name)
    )
    return ", ".join(filter(None, said))


def counts_table(rows: Sequence[Row]) -> str:
    """Returns a Markdown table of how many predictions positions have, for each bank.

    Counted over an epoch that starts with an empty bank, for the restricted models'
    short contexts.
    """
    quantiles = ("10 %", "25 %", "50 %", "75 %", "90 %")
    titles = ("bank", "filled up to", "mean", "alone", "below 5", *quantiles)
    distributions = {}
    for row in rows:
        size, target = row["config"]["bank_size"], 0
        if size:
            target = row["config"]["bank_target"] or row["config"]["min_count"]
        if row["effective_counts"]:
            distributions[size, target] = row["effective_counts"]
    lines = [
        (
            f"{size:,}",
            target,
            f"{counts['mean']:.1f}",
            *(f"{counts[key]:.2f}" for key in ("share_alone", "share_below_5")),
            *(f"{value:g}" for value in counts["quantiles"].values()),
        )
        for (size, target), counts in sorted(distributions.items())
    ]
    return table(titles, lines, left=())
