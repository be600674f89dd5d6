"""Tables and figures of ELECTRA with one optimiser and two."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.stats

from experiments.electra.chosen_rows import (
    Row,
    cells,
    detectors,
    generators_of,
    masked_rows,
    of_stage,
    primary,
    sweep_rows,
)
from experiments.electra.figures import draw_curves, draw_map, draw_sizes, draw_sweep
from experiments.electra.step_report import steps_between
from experiments.electra.task_report import of_tasks
from experiments.kit.drawing import distinct, table, with_deviation
from experiments.kit.paired import less
from rlm_tf.command_line.wording import number_of

# Of fine-tuning.
_TUNING = ("settings", "hours_of_a_pass", "hours_of_all")


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Draws the figures, and returns the tables of what there is."""
    folder.mkdir(parents=True, exist_ok=True)
    draw_map(folder / "map.png")
    main = detectors(rows)
    if main:
        draw_curves(main, folder / "curves.png")
        draw_sizes(main, folder / "sizes.png")
    swept = sweep_rows(rows)
    if swept:
        draw_sweep(swept, folder / "sweep.png")
    return "\n\n".join(tables(rows).values())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables of what there is, by name."""
    found: dict[str, str] = {}
    tasks = [row for row in rows if "task" in row]
    masked = masked_rows(rows)
    main, swept = detectors(rows), sweep_rows(rows)
    tried, searched = (of_stage(rows, stage) for stage in ("rates", "road-map"))
    projected = [row for row in rows if "hours_here" in row]
    if masked:
        found["generators"] = generators(masked)
    if main:
        found |= {
            "detection": detection(main, masked),
            "ranking": ranking(main),
            "frequency": frequency(main),
        }
    if any("norm_generator_generator" in row["curve"] for row in main):
        found["gradients"] = gradients(main)
    if any("update_generator" in row["curve"] for row in main):
        found["updates"] = updates(main)
    if len({row["generator"] for row in main if "standalone" in row}) > 1:
        found["sizes"] = sizes(main)
    for name, chosen in (
        ("rates", tried),
        ("road_map", searched),
        ("sweep", swept),
    ):
        if chosen:
            found[name] = by_rates(chosen)
    longest = max((row["steps"] for row in main), default=0)
    if steps := steps_between([r for r in main + tried if r["steps"] == longest]):
        found["steps"] = steps
    if tasks:
        found |= of_tasks(tasks)
    if projected:
        found["projected"] = projections(projected)
    return found


# === Tables ===


def generators(rows: Sequence[Row]) -> str:
    """Returns the table of masked language models, beside n-grams."""
    lines: list[tuple[Any, ...]] = []
    for layers in sorted({row["generator"] for row in rows}):
        own = [row for row in rows if row["generator"] == layers]
        lines.append(
            (
                number_of("layer", layers),
                len(own),
                with_deviation([row["test"]["nll"] for row in own], 3),
                with_deviation([100 * row["test"]["accuracy"] for row in own], 1),
                with_deviation([100 * row["replaced"] for row in own], 1),
            )
        )
    first = rows[0]
    for name, title in (
        ("n_gram", "n-gram of both sides"),
        ("frequency", "frequency"),
    ):
        own = first[name]
        loss, right = own["cross_entropy"], 100 * own["accuracy"]
        lines.append((title, "", f"{loss:.3f}", f"{right:.1f}", ""))
    titles = ("model", "seeds", "nats a masked piece", "right, %", "replaced, %")
    return table(titles, lines)


def detection(rows: Sequence[Row], masked: Sequence[Row]) -> str:
    """Returns the primary table: scores on text of one generator trained alone."""
    by_cell = cells(rows)
    lines: list[tuple[Any, ...]] = []
    for (arm, generator), own in by_cell.items():
        same = {
            other: r for (other, layers), r in by_cell.items() if layers == generator
        }
        f1, nats = ("own", "test", "f1"), ("own", "test", "cross_entropy")
        lines.append(
            (
                arm,
                generator,
                len(own),
                with_deviation([row["own"]["test"]["f1"] for row in own], 3),
                less("original", same, own, *f1, digits=3),
                with_deviation([row["own"]["test"]["cross_entropy"] for row in own], 4),
                less("original", same, own, *nats, digits=4),
                with_deviation([100 * r["own"]["test"]["accuracy"] for r in own], 2),
                with_deviation([row["joint"]["f1"] for row in own], 3),
                with_deviation([row["joint"]["generator"] for row in own], 3),
            )
        )
    gone = [(row["arm"], row["generator"]) for row in rows if "diverged" in row]
    for arm, generator in distinct(gone):
        number = gone.count((arm, generator))
        lines.append((arm, generator, number, "diverged", *[""] * 6))
    for row in generators_of(rows, masked):
        peer = row["n_gram_detector"]
        right = f"{100 * peer['accuracy']:.2f}"
        lines.append(("n-gram", "", "", f"{peer['f1']:.3f}", "", "", "", right, "", ""))
        nothing = f"{100 * (1 - row['replaced']):.2f}"
        lines.append(("nothing found", "", "", "0", "", "", "", nothing, "", ""))
    titles = (
        "arm",
        "layers of the generator",
        "seeds",
        "F1",
        "less `original`, ± 2 standard errors",
        "nats a piece",
        "less `original`",
        "right, %",
        "F1, own generator",
        "its generator, nats",
    )
    return table(titles, lines)


def ranking(rows: Sequence[Row]) -> str:
    """Returns F1 of detectors on text of every generator, and whether ranks agree."""
    by_cell = cells(rows)
    names = distinct(n for own in by_cell.values() for row in own for n in _names(row))
    means: dict[str, list[float]] = {name: [] for name in ("own", *names)}
    lines = []
    for (arm, generator), own in by_cell.items():
        # Means of a line are of the same seeds; some were scored on fewer texts.
        first = [row for row in own if set(names) <= {*_names(row)}] or own
        means["own"].append(float(np.mean([row["joint"]["f1"] for row in first])))
        for name in names:
            values = [
                row["standalone"][name]["test"]["f1"]
                for row in first
                if name in row["standalone"]
            ]
            means[name].append(float(np.mean(values)) if values else math.nan)
        last = [found[-1] for found in means.values()]
        shown = ["" if math.isnan(value) else f"{value:.3f}" for value in last]
        lines.append((arm, generator, len(first), *shown))
    if len(lines) > 2:
        agreed = [
            f"{_rank_correlation(means[names[0]], found):.2f}"
            for found in means.values()
        ]
        lines.append((f"rank correlation with {names[0]}", "", "", *agreed))
    titles = (
        "arm",
        "layers of the generator",
        "seeds",
        "own generator",
        *(_of_standalone(name) for name in names),
    )
    return table(titles, lines)


def _of_standalone(name: str) -> str:
    """Returns "4 layers, seed 1" for "4:1"."""
    layers, _, seed = name.partition(":")
    return f"{number_of('layer', int(layers))}, seed {seed}"


def _names(row: Row) -> list[str]:
    return [*row["standalone"]]


def _rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Returns Spearman's, over what has both."""
    both = np.array([first, second])
    both = both[:, ~np.isnan(both).any(axis=0)]
    return float(scipy.stats.spearmanr(*both).statistic)


def frequency(rows: Sequence[Row]) -> str:
    """Returns F1 by how frequent original pieces are."""
    lines = []
    for (arm, generator), own in cells(rows).items():
        values = [row["own"]["test"]["f1_by_frequency"] for row in own]
        means = np.mean(values, axis=0)
        lines.append((arm, generator, *(f"{value:.3f}" for value in means)))
    groups = len(lines[0]) - 2 if lines else 0
    titles = [f"fifth {number}" for number in range(1, groups + 1)]
    if titles:
        titles[0], titles[-1] = "rarest fifth", "most frequent"
    return table(("arm", "layers of the generator", *titles), lines)


def by_sizes(
    rows: Sequence[Row],
) -> list[tuple[str, str, Mapping[int, Sequence[Row]]]]:
    """Returns arms of several generators, `4 less 1`, and their rows by layers."""
    by_cell = cells(rows)
    found: list[tuple[str, str, Mapping[int, Sequence[Row]]]] = []
    for arm in distinct(arm for arm, _ in by_cell):
        own = {layers: some for (name, layers), some in by_cell.items() if name == arm}
        if len(own) > 1:
            found.append((arm, f"{max(own)} less {min(own)}", own))
    return found


def size_difference(
    by_layers: Mapping[int, Sequence[Row]], score: str, digits: int
) -> str:
    """Returns a score with the largest generator less that with the smallest."""
    groups = {str(layers): rows for layers, rows in by_layers.items()}
    larger = groups[str(max(by_layers))]
    place = ("own", "test", score)
    return less(str(min(by_layers)), groups, larger, *place, digits=digits)


def sizes(rows: Sequence[Row]) -> str:
    """Returns how much a larger generator changes F1, seed by seed."""
    lines = [
        (arm, name, size_difference(own, "f1", 3), loss)
        for arm, name, own in by_sizes(rows)
        if (loss := size_difference(own, "cross_entropy", 4))
    ]
    titles = ("arm", "layers of the generator", "F1 ± 2 standard errors", "nats")
    return table(titles, lines)


def gradients(rows: Sequence[Row]) -> str:
    """Returns medians over training of norms of gradients, before clipping."""
    of_terms = [
        (f"norm_{term}_{part}", f"{title} in {where}")
        for term, title in (
            ("generator", "the generator's loss"),
            ("discriminator", "the detector's, weighted,"),
        )
        for part, where in ((term, "its network"), ("shared", "shared embeddings"))
    ]
    lines = []
    for (arm, generator), own in cells(rows).items():
        shown = []
        for name, _ in of_terms:
            found = [np.median(r["curve"][name]) for r in own if name in r["curve"]]
            shown.append(with_deviation(found, 2) if found else "")
        lines.append((arm, generator, len(own), *shown))
    titles = ("arm", "layers of the generator", "seeds", *(t for _, t in of_terms))
    return table(titles, lines)


def updates(rows: Sequence[Row]) -> str:
    """Returns medians over training of the rate in effect, and of clipped norms."""
    parts = {"generator": "generator", "discriminator": "detector", "shared": "shared"}
    names = [f"{of}_{part}" for of in ("update", "gradient_norm") for part in parts]
    lines = []
    for (arm, generator), own in cells(rows).items():
        shown = []
        for name in names:
            scale = 1e4 if name.startswith("update") else 1.0
            found = [
                scale * np.median(r["curve"][name]) for r in own if name in r["curve"]
            ]
            shown.append(with_deviation(found, 2) if found else "")
        lines.append((arm, generator, len(own), *shown))
    titles = (
        *("arm", "layers of the generator", "seeds"),
        *(f"change of a weight and step, 1e-4, {title}" for title in parts.values()),
        *(f"norm after clipping, {title}" for title in parts.values()),
    )
    return table(titles, lines)


def by_rates(rows: Sequence[Row]) -> str:
    """Returns scores on validation text by rate and weight; what diverged is said."""
    lines = []
    for row in rows:
        if "diverged" in row:
            scores: tuple[str, ...] = ("diverged", "", "")
        else:
            own = row["standalone"][primary(row)]["valid"]
            scores = (
                f"{own['f1']:.3f}",
                f"{own['cross_entropy']:.4f}",
                f"{row['joint']['generator']:.3f}",
            )
        rates = f"{row['rate']:g}"
        of_generator = row["generator_rate"]
        lines.append(
            (
                row["arm"],
                row["generator"],
                f"{row['steps']:,}",
                rates,
                "" if of_generator is None else f"{of_generator:g}",
                f"{row['weight']:g}",
                row["seed"],
                *scores,
            )
        )
    titles = (
        "arm",
        "layers of the generator",
        "steps",
        "rate",
        "rate of the generator",
        "weight",
        "seed",
        "F1, valid",
        "nats a piece",
        "its generator, nats",
    )
    return table(titles, lines)


def projections(rows: Sequence[Row]) -> str:
    """Returns seconds of a step and hours of all, of the thesis' sizes."""
    lines = [
        (
            row["name"].split("-")[1],
            f"{row['parameters']['generator'] / 1e6:.0f}",
            f"{row['parameters']['discriminator'] / 1e6:.0f}",
            f"{row['step_seconds']:,.0f}",
            f"{row['hours_here']:,.0f}",
            f"{row['operations_of_a_step']:.2g}",
            f"{row['hours_on_processors']:,.0f}",
            *(f"{row['tuning'][name]:,.0f}" for name in _TUNING),
        )
        for row in rows
    ]
    titles = (
        "layers x width",
        "generator, million weights",
        "detector",
        "seconds of a step here",
        "hours of all steps",
        "operations of a step",
        "hours on eight processors",
        "settings of Table A.2",
        "hours of a pass over GLUE",
        "hours of all settings",
    )
    return table(titles, lines)
