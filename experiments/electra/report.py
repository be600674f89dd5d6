"""Tables and figures of ELECTRA with one optimiser and two."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import scipy.stats

from experiments.kit.drawing import distinct, save, table, with_deviation
from experiments.kit.paired import less
from rlm_tf.command_line.wording import number_of
from rlm_tf.objectives.replaced_tokens import bound

Row = Mapping[str, Any]
# What a row must have to be reported.
NEEDS = ("name", "arm", "generator", "rate", "seed")
_ORDER = ("masked", "original", "separate", "disentangled", "decoupled")
_COLOURS = dict(
    zip(_ORDER, ("#4c4c4c", "#0072b2", "#009e73", "#cc79a7", "#d55e00"), strict=True)
)
_DASHES = {1: ":", 2: "--", 4: "-"}
# Of Figure 1.5: C, c and the steps.
_ERROR_WEIGHT, _CONDITION, _MAP_STEPS = 0.2, 3.0, 1000


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
    masked = [row for row in rows if row["arm"] == "masked" and "test" in row]
    main, swept = detectors(rows), sweep_rows(rows)
    tried, searched = (_of_stage(rows, stage) for stage in ("rates", "road-map"))
    projected = [row for row in rows if "hours_here" in row]
    if masked:
        found["generators"] = generators(masked)
    if main:
        found |= {
            "detection": detection(main, masked),
            "ranking": ranking(main),
            "frequency": frequency(main),
        }
    if len({row["generator"] for row in main if "standalone" in row}) > 1:
        found["sizes"] = sizes(main)
    for name, chosen in (
        ("rates", tried),
        ("road_map", searched),
        ("sweep", swept),
    ):
        if chosen:
            found[name] = by_rates(chosen)
    if projected:
        found["projected"] = projections(projected)
    return found


def detectors(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows of the comparison, in order."""
    return _of_stage(rows, "main")


def sweep_rows(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows of the sweep of rates and weights."""
    return _of_stage(rows, "sweep")


def _of_stage(rows: Sequence[Row], stage: str) -> list[Row]:
    found = [
        row
        for row in rows
        if row["arm"] != "masked" and "curve" in row and row["stage"] == stage
    ]
    return sorted(
        found,
        key=lambda row: (
            _ORDER.index(row["arm"]),
            row["generator"],
            row["rate"],
            row["weight"],
            row["seed"],
        ),
    )


def _cells(rows: Sequence[Row]) -> dict[tuple[str, int], list[Row]]:
    """Returns rows that have not diverged by arm and layers of the generator.

    Each with `own`: its scores on the text of the first generator trained alone.
    """
    found: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        if "standalone" in row:
            scored = {**row, "own": row["standalone"][primary(row)]}
            found.setdefault((row["arm"], row["generator"]), []).append(scored)
    return found


def primary(row: Row) -> str:
    """Returns the name of the generator whose text the comparison is on."""
    return next(iter(row["standalone"]))


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
    cells = _cells(rows)
    lines: list[tuple[Any, ...]] = []
    for (arm, generator), own in cells.items():
        same = {other: r for (other, layers), r in cells.items() if layers == generator}
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
    for row in _generators_of(rows, masked):
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


def _generators_of(rows: Sequence[Row], masked: Sequence[Row]) -> list[Row]:
    """Returns the masked language models whose text the comparison is on."""
    names = {primary(row) for row in rows if "standalone" in row}
    return [row for row in masked if f"{row['generator']}:{row['seed']}" in names]


def ranking(rows: Sequence[Row]) -> str:
    """Returns F1 of detectors on text of every generator, and whether ranks agree."""
    cells = _cells(rows)
    names = distinct(n for own in cells.values() for row in own for n in _names(row))
    means: dict[str, list[float]] = {name: [] for name in ("own", *names)}
    lines = []
    for (arm, generator), own in cells.items():
        first = [row for row in own if set(names) <= {*_names(row)}]
        if not first:
            continue
        means["own"].append(float(np.mean([row["joint"]["f1"] for row in first])))
        for name in names:
            values = [row["standalone"][name]["test"]["f1"] for row in first]
            means[name].append(float(np.mean(values)))
        shown = [f"{found[-1]:.3f}" for found in means.values()]
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
        *(f"{name.replace(':', ' layers, seed ')}" for name in names),
    )
    return table(titles, lines)


def _names(row: Row) -> list[str]:
    return [*row["standalone"]]


def _rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    return float(scipy.stats.spearmanr(first, second).statistic)


def frequency(rows: Sequence[Row]) -> str:
    """Returns F1 by how frequent original pieces are."""
    lines = []
    for (arm, generator), own in _cells(rows).items():
        values = [row["own"]["test"]["f1_by_frequency"] for row in own]
        means = np.mean(values, axis=0)
        lines.append((arm, generator, *(f"{value:.3f}" for value in means)))
    groups = len(lines[0]) - 2 if lines else 0
    titles = [f"fifth {number}" for number in range(1, groups + 1)]
    if titles:
        titles[0], titles[-1] = "rarest fifth", "most frequent"
    return table(("arm", "layers of the generator", *titles), lines)


def sizes(rows: Sequence[Row]) -> str:
    """Returns how much a larger generator changes F1, seed by seed."""
    cells = _cells(rows)
    lines = []
    for arm in distinct(arm for arm, _ in cells):
        own = {layers: found for (name, layers), found in cells.items() if name == arm}
        groups = {str(layers): found for layers, found in own.items()}
        if len(groups) < 2:
            continue
        least, most = min(own), max(own)
        larger = groups[str(most)]
        lines.append(
            (
                arm,
                f"{most} less {least}",
                less(str(least), groups, larger, "own", "test", "f1", digits=3),
                less(
                    str(least),
                    groups,
                    larger,
                    "own",
                    "test",
                    "cross_entropy",
                    digits=4,
                ),
            )
        )
    titles = ("arm", "layers of the generator", "F1 ± 2 standard errors", "nats")
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
    )
    return table(titles, lines)


# === Figures ===


def draw_curves(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws F1 and cross-entropy on the primary text over steps (Figures 1.1, 1.2)."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    titles = ("F1, text of one generator", "nats a piece", "F1, own generator")
    for (arm, generator), own in _cells(rows).items():
        name = primary(own[0])
        fields = (f"{name}_f1", f"{name}_cross_entropy", "val_f1")
        for panel, field in zip(axes, fields, strict=True):
            curves = [row["curve"][field] for row in own if field in row["curve"]]
            if not curves:
                continue
            steps = np.linspace(0, own[0]["steps"], len(curves[0]) + 1)[1:]
            panel.plot(
                steps,
                np.mean(curves, axis=0),
                _DASHES.get(generator, "-."),
                color=_COLOURS[arm],
                label=f"{arm}, {generator} layers",
            )
    for panel, title in zip(axes, titles, strict=True):
        panel.set(xlabel="steps", title=title)
    save(figure, path)


def draw_sizes(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws F1 against the generator's layers."""
    figure, panel = plt.subplots(figsize=(5, 4), layout="constrained")
    for (arm, generator), own in _cells(rows).items():
        values = [row["own"]["test"]["f1"] for row in own]
        named = panel.get_legend_handles_labels()[1]
        panel.errorbar(
            [generator],
            [np.mean(values)],
            [[np.ptp(values) / 2]] * 2,
            fmt="o",
            capsize=3,
            color=_COLOURS[arm],
            label=arm if arm not in named else None,
        )
    panel.set(xlabel="layers of the generator", ylabel="F1")
    save(figure, path)


def draw_sweep(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws F1 over steps at several rates and weights (Figures 1.3, 1.4, 1.6)."""
    cells = distinct((row["arm"], row["generator"]) for row in rows)
    figure, axes = plt.subplots(
        1,
        len(cells),
        figsize=(4.2 * len(cells), 3.6),
        layout="constrained",
        squeeze=False,
        sharey=True,
    )
    for (arm, generator), panel in zip(cells, axes[0], strict=True):
        own = [r for r in rows if (r["arm"], r["generator"]) == (arm, generator)]
        for row in own:
            (values,) = [
                found
                for field, found in row["curve"].items()
                if ":" in field and field.endswith("_f1")
            ][:1] or [[]]
            looks = row["steps"] / max(len(row["curve"].get("epoch", values)), 1)
            gone = " (diverged)" if "diverged" in row else ""
            weight = f", weight {row['weight']:g}" if row["weight"] != 50 else ""
            panel.plot(
                looks * np.arange(1, len(values) + 1),
                values,
                label=f"rate {row['rate']:g}{weight}{gone}",
            )
        panel.set(xlabel="steps", title=f"{arm}, generator of {generator} layers")
    axes[0][0].set_ylabel("F1, text of one generator")
    save(figure, path)


def draw_map(path: pathlib.Path) -> None:
    """Draws the detector's error by both rates (Figure 1.5), for two generators.

    Equation 1.10, with constants of ours, for the thesis names none: both networks
    begin at ln 8,000 nats and take 1,000 steps, c = 3, C = 0.2. The diagonal is one
    optimiser; dots are the generator's best rate for each rate of the detector.
    """
    figure, axes = plt.subplots(
        1, 2, figsize=(9.5, 4.2), layout="constrained", sharey=True
    )
    rates = np.geomspace(1e-5, 1e-2, 121)
    own_layers, size = 4, math.log(8000)
    for panel, layers in zip(axes, (1, 12), strict=True):
        losses = size * _left(rates, layers)
        left = _left(rates, own_layers)
        error = np.array([bound(losses, k, _ERROR_WEIGHT).numpy() for k in left])
        shades = panel.contourf(rates, rates, error, 20, cmap="viridis_r")
        panel.plot(rates, rates, color="white", lw=1.5, label="one optimiser")
        inside = [_inner_minimum(row) for row in error]
        found = [(rates[i], rate) for i, rate in zip(inside, rates, strict=True) if i]
        if found:
            panel.plot(
                *zip(*found, strict=True), ".", color="#d55e00", label="sweet spots"
            )
        panel.set(
            xscale="log",
            yscale="log",
            xlabel="rate of the generator",
            title=f"generator of {number_of('layer', layers)}",
        )
        panel.legend(fontsize=8, loc="upper left")
    axes[0].set_ylabel("rate of the detector")
    figure.colorbar(shades, ax=axes, label="bound on the detector's error")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _left(rates: np.ndarray, layers: int) -> np.ndarray:
    """Returns what so many steps leave of an error, by rate."""
    speed = _CONDITION ** (2 * (layers - 1) / layers)
    return (1 - rates * speed) ** _MAP_STEPS


def _inner_minimum(values: np.ndarray) -> int | None:
    """Returns where values have a minimum with higher ones on both sides."""
    place = int(np.argmin(values[:-1]))
    inside = 0 < place < len(values) - 2
    return place if inside and values[place] < values[place + 1] else None
