"""The table, the curve and the file of `rlm_tf coherence`."""

from __future__ import annotations

import io
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from rlm_tf.command_line.json_files import with_nulls, write_json
from rlm_tf.command_line.written_files import write_beside
from rlm_tf.commands.information.estimating import Job
from rlm_tf.commands.report.writing import markdown_table
from rlm_tf.evaluation import SegmentInformation

Found = Sequence[tuple[Job, SegmentInformation]]
_GREYS = ("#999999", "#555555")
# Test pairs of a fold; with fewer an estimate is taken with caution.
_FEW_PAIRS = 50
# Tokens below which bounds with and without bias part (experiments/mi_text).
_FEW_TOKENS = 200_000
# Nats where there should be none that are not worth a word.
_NOTHING = 0.05


def rows_of(found: Found, tokens: int) -> list[dict[str, Any]]:
    """Returns the rows of texts as they were."""
    return [
        {
            "text": job.name,
            "gap": job.gap,
            "tokens": tokens,
            "mine": info.mine.mean,
            "sd": info.mine.deviation,
            "se": info.mine.standard_error,
            "nwj": info.nwj.mean,
            "shuffled": info.shuffled.mean,
            "ceiling": info.ceiling,
        }
        for job, info in found
        if not job.shuffled
    ]


def details_of(found: Found) -> list[dict[str, Any]]:
    """Returns what folds say, row by row."""
    return [
        {
            "text": job.name,
            "gap": job.gap,
            "pairs": info.pairs,
            "dropout": info.dropout,
            "steps": info.steps,
            "capped": info.capped,
            "mine": info.mine.folds,
            "nwj": info.nwj.folds,
            "shuffled": info.shuffled.folds,
        }
        for job, info in found
        if not job.shuffled
    ]


def controls_of(found: Found, tokens: int) -> list[dict[str, Any]]:
    """Returns the rows of shuffled texts."""
    return [
        {
            "text": job.name,
            "order": job.shuffled,
            "gap": job.gap,
            "tokens": tokens,
            "mine": info.mine.mean,
            "sd": info.mine.deviation,
            "se": info.mine.standard_error,
            "folds": len(info.mine.folds),
        }
        for job, info in found
        if job.shuffled
    ]


def table_of(rows: list[dict[str, Any]], controls: list[dict[str, Any]]) -> str:
    """Returns the table that is printed, in nats."""
    lines: list[tuple[str, ...]] = [
        (
            "text",
            "gap",
            "MI, MINE",
            "± se",
            "sd",
            "NWJ",
            "half a block apart",
            "ceiling",
        )
    ]
    for row in rows:
        numbers = [row[k] for k in ("mine", "se", "sd", "nwj", "shuffled", "ceiling")]
        lines.append(
            (row["text"], str(row["gap"]), *(f"{number:.3f}" for number in numbers))
        )
    for row in controls:
        lines.append(
            (
                f"{row['text']}, {row['order']} shuffled",
                str(row["gap"]),
                *(f"{row[name]:.3f}" for name in ("mine", "se", "sd")),
                "",
                "",
                "",
            )
        )
    return "\n".join(markdown_table(lines))


def warnings_of(found: Found, tokens: int) -> list[str]:
    """Returns lines about estimates that should not be believed.

    Args:
        found: The estimates.
        tokens: That all texts are cut to.
    """
    lines = []
    if tokens < _FEW_TOKENS:
        lines.append(
            f"{tokens:,} tokens are few: below some {_FEW_TOKENS:,} estimates are low, "
            "and differ from one fold to the next by more than their errors say"
        )
    for job, info in found:
        if job.shuffled:
            continue
        where = f"{job.name}, gap {job.gap}"
        if info.pairs < _FEW_PAIRS:
            lines.append(
                f"{where}: a fold has only {info.pairs} pairs to be tested on; take "
                "more text, fewer --folds or a shorter --segment"
            )
        if info.capped:
            lines.append(
                f"{where}: in {info.capped} of {len(info.steps)} folds training ended "
                "at --most_steps, the critic still gaining: the estimate is low"
            )
        if info.mine.mean <= 2 * info.mine.standard_error:
            lines.append(
                f"{where}: nothing was found beyond two standard errors: too little "
                "text to learn from, or segments share nothing"
            )
        null = info.shuffled
        if null.mean > max(_NOTHING, 2 * null.standard_error):
            lines.append(
                f"{where}: segments half a block apart show {null.mean:.3f} nats, "
                "which should be about none: take more text"
            )
    return lines


def differences_of(found: Found) -> list[str]:
    """Returns lines that compare each text with the first."""
    first: dict[int, tuple[Job, SegmentInformation]] = {}
    lines = []
    for job, info in found:
        if job.shuffled:
            continue
        base, other = first.setdefault(job.gap, (job, info))
        if base is job:
            continue
        error = math.hypot(info.mine.standard_error, other.mine.standard_error)
        lines.append(
            f"{job.name} less {base.name}, gap {job.gap}: "
            f"{info.mine.mean - other.mine.mean:+.3f} ± {error:.3f} nats (one "
            "standard error)"
        )
    return lines


def write(
    folder: pathlib.Path, content: dict[str, Any], text: str, segment: int
) -> None:
    """Writes report.json, table.md and information.png.

    Args:
        folder: Of the files.
        content: Of the report.
        text: Table and what stands below it.
        segment: Tokens of a segment.
    """
    write_json(folder / "report.json", with_nulls(content))
    write_beside(folder / "table.md", (text + "\n").encode())
    write_beside(
        folder / "information.png",
        curve(content["rows"], content["controls"], segment),
    )


def curve(
    rows: list[dict[str, Any]], controls: list[dict[str, Any]], segment: int
) -> bytes:
    """Draws information against the gap, with standard errors; returns a PNG."""
    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    axes.spines[["top", "right"]].set_visible(False)
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["text"], []).append(row)
    for name, group in groups.items():
        _line(axes, group, label=name, marker="o")
    shuffles: dict[str, list[dict[str, Any]]] = {}
    for row in controls:
        name = f"{row['text']}, {row['order']} shuffled"
        shuffles.setdefault(name, []).append(row)
    for (name, group), grey in zip(shuffles.items(), _GREYS, strict=False):
        _line(axes, group, label=name, color=grey, linestyle="--", marker=".")
    axes.axhline(0, color="#dddddd", linewidth=1, zorder=0)
    axes.set_xscale("symlog", linthresh=10)
    gaps = sorted({row["gap"] for row in rows})
    axes.set_xticks(gaps, [str(gap) for gap in gaps])
    axes.minorticks_off()
    axes.set(
        xlabel=f"tokens between two segments of {segment}",
        ylabel="mutual information, nats",
    )
    axes.legend(frameon=False, fontsize="small")
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=120)
    plt.close(figure)
    return written.getvalue()


def _line(axes: Any, group: list[dict[str, Any]], **options: Any) -> None:
    group = sorted(group, key=lambda row: row["gap"])
    axes.errorbar(
        [row["gap"] for row in group],
        [row["mine"] for row in group],
        yerr=[row["se"] for row in group],
        capsize=3,
        linewidth=1.4,
        **options,
    )
