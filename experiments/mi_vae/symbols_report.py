"""Tables and figures of uniform symbols, in the form of the published chapter."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import distinct, save, table
from experiments.mi_vae.published import LEAST_NLL, SYMBOL_ENTROPY, SYMBOL_LEVELS
from experiments.mi_vae.report import Row, frontier_of, line_of, lines_of, measured
from rlm_tf.evaluation import least_costs

# A published figure is a panel: its lines, with KL and Rényi objective alike.
_PANELS = {
    "5.2: IWAE, continuous": (
        "elbo 1",
        "iwae 1",
        "iwae 16",
        "iwae 64",
    ),
    "5.3: DReG, continuous": ("elbo 1", "dreg 1", "dreg 16"),
    "5.4: DReG, samples of both terms": ("dreg 1", "dreg 16/1", "dreg 1/16", "dreg 16"),
    "5.5: REINFORCE, discrete": ("reinforce 1", "reinforce 16"),
    "5.6: VIMCO, discrete": ("reinforce 1", "vimco 16", "vimco 64"),
    "5.7: VIMCO, samples of both terms": (
        "reinforce 1",
        "vimco 16/1",
        "vimco 1/16",
        "vimco 16",
    ),
    "5.15: VQ-VAE": ("VQ-VAE", "reinforce 1", "vimco 16"),
    "5.26: power objective, DReG": ("dreg 16",),
    "5.27: power objective, VIMCO": ("vimco 16",),
}
_LEAST = 1e-4


def levels_table(rows: Sequence[Row]) -> str:
    """Returns the least excess of the NLL over the entropy at levels of usage.

    Of several seeds, means; levels must be reached with all.
    """
    members = lines_of(rows)
    lines = [
        [name, len(members[name]), *(f"{_cell(a)} / {_cell(b)}" for a, b in pairs)]
        for name, pairs in excesses(rows).items()
    ]
    titles = [f"usage >= {level:.2f}" for level in usage_levels(rows)]
    return table(["line", "points", *titles], lines)


def _cell(excess: float) -> str:
    return "-" if math.isnan(excess) else f"{excess:.3f}"


def usage_levels(rows: Sequence[Row]) -> list[float]:
    """Returns the published levels of usage as the same shares of the rows' entropy."""
    return [level / SYMBOL_ENTROPY * symbols_entropy(rows) for level in SYMBOL_LEVELS]


def excesses(rows: Sequence[Row]) -> dict[str, list[tuple[float, float]]]:
    """Returns how far the least NLL is above the entropy, a pair a level of usage.

    A pair is ours and the published, nats; not a number: no point has so much usage, or
    it was not read. How the published lines group two numbers of samples is not known.
    """
    found = {}
    for name, members in lines_of(rows).items():
        least = np.mean(
            [
                _least(members, seed, usage_levels(rows))
                for seed in distinct(row["config"]["seed"] for row in members)
            ],
            axis=0,
        )
        published = LEAST_NLL.get(name.removesuffix(", terms"), [math.nan] * len(least))
        found[name] = [
            (own - symbols_entropy(rows), theirs - SYMBOL_ENTROPY)
            for own, theirs in zip(least, published, strict=True)
        ]
    return found


def _least(members: Sequence[Row], seed: int, levels: Sequence[float]) -> np.ndarray:
    """Returns the least NLL of a seed's runs at levels of usage; nan: none is there."""
    found = [measured(row) for row in members if row["config"]["seed"] == seed]
    costs, gains = ([each[key] for each in found] for key in ("nll", "usage"))
    return np.array(least_costs(costs, gains, levels))


def panels_figure(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws the Pareto frontiers of every published figure in a panel of its own."""
    entropy = symbols_entropy(rows)
    lines = lines_of(rows)
    figure, grid = plt.subplots(
        3, 3, figsize=(15, 12), sharex=True, sharey=True, layout="constrained"
    )
    for axes, (title, names) in zip(grid.flat, _PANELS.items(), strict=True):
        for number, name in enumerate(names):
            for line, style in _members(name, with_power="power" in title):
                if line in lines:
                    _draw(axes, lines[line], entropy, style, f"C{number}", line)
        axes.axvline(entropy, color="k", lw=0.7, ls=":")
        axes.set(
            title=title,
            xlabel="latent usage, nats",
            ylabel=f"NLL - {entropy:.3f}, nats",
            yscale="log",
        )
    save(figure, path)


def _members(name: str, with_power: bool) -> list[tuple[str, str]]:
    """Returns the lines of a name, and how they are drawn."""
    if name == "VQ-VAE":
        return [(name, "x-.")]
    found = [(f"{name} kl", "o-"), (f"{name} renyi", "s--")]
    if "/" in name:
        found += [(f"{line}, terms", f"{style[0]}:") for line, style in found]
    return [*found, (f"{name} power", "^:")] if with_power else found


def _draw(
    axes: Any,
    members: Sequence[Row],
    entropy: float,
    style: str,
    colour: str,
    name: str,
) -> None:
    points = frontier_of([measured(row) for row in members])
    axes.plot(
        [usage for usage, _ in points],
        [max(nll - entropy, _LEAST) for _, nll in points],
        style,
        color=colour,
        mfc=colour if "renyi" in name else "none",
        lw=1,
        label=name,
    )


def rates_figure(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws rate against distortion, and the KL of q beside the estimate of the true.

    All points, not only those of the frontiers; VQ-VAEs have no estimate.
    """
    entropy = symbols_entropy(rows)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        if row["config"]["latents"] != "quantised":
            kinds.setdefault(line_of(row).split()[0], []).append(row)
    for number, (name, members) in enumerate(kinds.items()):
        own = [measured(row) for row in members]
        usage, distortion, representational = (
            [found[key] for found in own]
            for key in ("usage", "distortion", "representational_kl")
        )
        options = {"color": f"C{number}", "alpha": 0.8, "label": name}
        left.plot(distortion, usage, ".", **options)
        right.plot(usage, representational, ".", **options)
    left.plot([0, entropy], [entropy, 0], "k:", lw=0.8, label="NLL = entropy")
    left.set(xlabel="distortion, nats", ylabel="rate: latent usage, nats")
    right.plot([0, entropy], [0, entropy], "k:", lw=0.8, label="equal")
    right.set(xlabel="estimate of KL(p(z|x), p(z)), nats", ylabel="KL(q(z|x), p(z))")
    save(figure, path)


def symbols_entropy(rows: Sequence[Row]) -> float:
    """Returns the entropy of a symbol, nats."""
    return math.log(rows[0]["config"]["num_symbols"])
