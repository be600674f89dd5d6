"""Tables and figures of sentences, in the form of the published chapter."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Sequence

import matplotlib.pyplot as plt

from experiments.kit.drawing import save, shared_legend, table
from experiments.mi_vae.published import BEST_OF_SENTENCES
from experiments.mi_vae.report import Row, frontier_of, lines_of

# Panels: title, way of training, text that is evaluated.
_PANELS = (
    ("training fit, no dropout (5.8, 5.9, 5.13)", "fit", "train"),
    ("validation, no dropout", "fit", "valid"),
    ("validation, a mask for each sample (5.10)", "naive", "valid"),
    ("validation, masks shared by samples (5.12, 5.14)", "shared", "valid"),
    ("validation, penalty on weights (5.11)", "l2", "valid"),
)


def way_of(row: Row) -> str:
    """Returns the way of training: `fit`, `l2`, or with dropout `shared` or `naive`."""
    config = row["config"]
    rates = ("input_dropout", "state_dropout", "output_dropout")
    if not any(config[name] for name in rates):
        return "l2" if config["l2"] else "fit"
    # One sample has nothing to share masks with.
    return "shared" if config["shared_dropout"] else "naive"


def sentences_table(rows: Sequence[Row]) -> str:
    """Returns NLL and usage of a token, one line a run."""
    lines = []
    for row in rows:
        found = {
            name: row["evaluation"][name]["per_token"] for name in ("train", "valid")
        }
        config = row["config"]
        lines.append(
            [
                f"{config['estimator']} {config['num_samples']}",
                way_of(row),
                f"{config['lambda_']:g}",
                config["steps"],
                *(
                    f"{found[text][key]:.3f}"
                    for text in ("train", "valid")
                    for key in ("nll", "usage")
                ),
                f"{found['valid']['representational_kl']:.3f}",
                found["valid"]["active_units"],
                f"{row['step_ms']:.0f}",
            ]
        )
    titles = [
        "line",
        "regularisation",
        "lambda",
        "steps",
        "NLL, train",
        "usage, train",
        "NLL, valid",
        "usage, valid",
        "KL(q, p), valid",
        "active",
        "ms/step",
    ]
    return table(titles, lines, left=(0, 1))


def best_table(rows: Sequence[Row]) -> str:
    """Returns the best test results in the form of Table 5.1, one line a line.

    The run is the one whose NLL on validation text is least. Published ones are of the
    whole training text, and of whole sentences of the whole test text.
    """
    lines = []
    for name, members in lines_of(rows).items():
        best = min(members, key=lambda row: row["evaluation"]["valid"]["nll"])
        found = best["evaluation"]["test"]["per_token"]
        estimator, samples, _ = name.split()
        family = "dreg" if estimator == "dreg" else "vimco"
        published = BEST_OF_SENTENCES[f"{family} {16 if samples != '1' else 1}"]
        lines.append(
            [
                name,
                f"{way_of(best)}, lambda {best['config']['lambda_']:g}",
                f"{math.exp(found['nll']):.1f}",
                f"{found['nll']:.3f}",
                f"{found['usage']:.3f}",
                " / ".join(f"{value:g}" for value in published),
            ]
        )
    config = rows[0]["config"]
    of = f"first {config['eval_sentences']:,} sentences, {config['most_tokens']} tokens"
    titles = [
        "line",
        "best run",
        f"test perplexity ({of})",
        "NLL",
        "usage",
        "published, whole texts, 16 samples or 1",
    ]
    return table(titles, lines, left=(0, 1))


def sentences_figure(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws NLL against usage of a token, a panel a way of training."""
    panels = [panel for panel in _PANELS if any(way_of(r) == panel[1] for r in rows)]
    figure, grid = plt.subplots(2, 3, figsize=(16, 9), layout="constrained")
    colours = {name: f"C{number}" for number, name in enumerate(lines_of(rows))}
    validated = None
    for axes, (title, way, text) in zip(grid.flat, panels, strict=False):
        # Ways against over-fitting are compared on one scale.
        if way != "fit" and validated is not None:
            axes.sharex(validated)
            axes.sharey(validated)
        elif way != "fit":
            validated = axes
        own = [row for row in rows if way_of(row) == way]
        for name, members in lines_of(own).items():
            found = [row["evaluation"][text]["per_token"] for row in members]
            points = frontier_of(found)
            axes.plot(*zip(*points, strict=True), "-", color=colours[name], lw=1)
            axes.plot(
                [each["usage"] for each in found],
                [each["nll"] for each in found],
                "o",
                mfc="none",
                color=colours[name],
                label=name,
            )
        axes.set(
            title=title, xlabel="latent usage, nats a token", ylabel="NLL, nats a token"
        )
    used, spare = grid.flat[: len(panels)], grid.flat[len(panels) :]
    for axes in spare:
        axes.set_axis_off()
    if spare.size:
        shared_legend(spare[0], used)
    save(figure, path)
