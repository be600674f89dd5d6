"""Tables of what runs cost: the samplers beside each other, hours, a projection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from experiments.imm_lm.report import Row, number, spread
from experiments.kit.drawing import table

# Other programs used the cores beside it: its time says nothing.
_DISTURBED = "noising-bigram-kn-dropout-0.4"


def sampler_table(rows: Sequence[Row]) -> str:
    """Returns a Markdown table of perplexities and of the time of a step, a line a run.

    Of the epochs but the last it has the best: the learning rate of some runs was
    halved before the last epoch.
    """
    times = {
        row["name"]: row["step_ms"]
        for row in rows
        if row.get("step_ms") and row["name"] != _DISTURBED
    }
    lines = []
    for row in rows:
        earlier = [number(point["val_perplexity"]) for point in row["curve"][:-1]]
        mixed = row["interpolation"]["same"]
        step = times.get(row["name"])
        lines.append(
            (
                row["name"],
                f"{np.nanmin(earlier):.1f}" if earlier else "-",
                spread([row["perplexity"]["valid"]]),
                spread([row["perplexity"]["test"]]),
                spread([mixed["valid"]]),
                spread([mixed["test"]]),
                f"{step:.0f}" if step else "-",
                _times(step / times["none"]) if step and "none" in times else "-",
            )
        )
    titles = (
        "arm",
        "valid, best before the last epoch",
        "valid",
        "test",
        "mixed with P_hat: valid",
        "test",
        "ms/step",
        "steps of `none`",
    )
    return table(titles, lines)


def projection_table(row: Row) -> str:
    """Returns a Markdown table of the time of the steps of a preset, and its hours."""
    steps, epochs = row["steps_per_epoch"], row["config"]["epochs"]
    plain = row["seconds_per_step"]["plain"]
    lines = []
    for kind, seconds in row["seconds_per_step"].items():
        hours = row["hours_per_epoch"].get(kind)
        lines.append(_projected(kind, seconds, "", plain, hours, epochs))
    for kind, hours in row["hours_per_epoch"].items():
        if kind not in row["seconds_per_step"]:
            seconds = hours * 3600 / steps
            lines.append(
                _projected(kind, seconds, " (projected)", plain, hours, epochs)
            )
    titles = (
        "step",
        "s/step",
        "steps of `plain`",
        "hours an epoch",
        f"hours for {epochs} epochs",
    )
    return table(titles, lines)


def _projected(
    kind: str, seconds: float, how: str, plain: float, hours: float | None, epochs: int
) -> Sequence[str]:
    known = ["", ""]
    if hours is not None:
        known = [_short(hours), f"{hours * epochs:,.0f}"]
    return (kind, f"{_short(seconds)}{how}", _times(seconds / plain), *known)


def hours_table(rows: Mapping[str, Sequence[Row]]) -> str:
    """Returns a Markdown table of the hours of training, a line a study."""
    lines, total = [], 0.0
    for study, members in rows.items():
        minutes = [row["seconds"] / 60 for row in members if row.get("seconds")]
        if minutes:
            epochs = sorted({row["epochs"] for row in members})
            total += sum(minutes)
            lines.append(
                (
                    study,
                    len(minutes),
                    " to ".join(map(str, dict.fromkeys((epochs[0], epochs[-1])))),
                    f"{min(minutes):.0f} to {max(minutes):.0f}",
                    f"{sum(minutes) / 60:.1f}",
                )
            )
    lines.append(("all", sum(line[1] for line in lines), "", "", f"{total / 60:.1f}"))
    return table(("study", "runs", "epochs", "minutes a run", "hours"), lines)


def _short(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def _times(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"
