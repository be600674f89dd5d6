"""The data-scarcity curve: loss against text, and what IMM is worth in text."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import numpy as np

from experiments.imm.report import Row, colour_of
from rlm_tf.evaluation import fit_scaling_law


def arm_of(row: Row) -> str:
    """Returns the arm of a row, with `-all` for a restricted model of all the text."""
    config = row["config"]
    uses_all = config["restricted_text"] == "all" and config["arm"].startswith("imm-")
    return config["arm"] + ("-all" if uses_all else "")


def mean_losses(rows: Sequence[Row], text: str) -> dict[str, dict[int, float]]:
    """Returns arm -> training tokens -> mean loss over seeds, nats a token."""
    losses: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        tokens = row["corpus"]["train_tokens"]
        loss = float(np.log(row["perplexity"][text]))
        losses.setdefault(arm_of(row), {}).setdefault(tokens, []).append(loss)
    return {
        arm: {
            tokens: float(np.mean(values)) for tokens, values in sorted(points.items())
        }
        for arm, points in losses.items()
    }


def epochs_of(rows: Sequence[Row]) -> dict[tuple[str, int], str]:
    """Returns (arm, training tokens) -> the epochs of its runs, which may differ."""
    epochs: dict[tuple[str, int], set[int]] = {}
    for row in rows:
        key = (arm_of(row), row["corpus"]["train_tokens"])
        epochs.setdefault(key, set()).add(row["config"]["epochs"])
    return {key: ", ".join(map(str, sorted(each))) for key, each in epochs.items()}


def scarcity_table(rows: Sequence[Row], text: str = "test") -> str:
    """Returns a Markdown table with the fitted law and equivalent amounts of text.

    An asterisk marks amounts outside those of arm none, where the law extrapolates.
    """
    losses = mean_losses(rows, text)
    plain = losses["none"]
    law = fit_scaling_law(np.array(list(plain)), np.array(list(plain.values())))
    epochs = epochs_of(rows)
    lines = [
        f"`L(D) = E + B / D^b` of arm none ({text}): E = {law.irreducible:.3f}, "
        f"B = {law.amplitude:.3g}, b = {law.exponent:.3f}, root mean square error "
        f"{law.residual:.4f} nats over {len(plain)} amounts.",
        "",
        "| training tokens | arm | epochs | perplexity | none needs | worth |",
        "| ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for arm, points in losses.items():
        for tokens, loss in points.items():
            needed = law.equivalent_tokens(loss)
            inside = 0.99 * min(plain) <= needed <= 1.01 * max(plain)
            mark = "" if inside else "*"
            lines.append(
                f"| {tokens:,} | {arm} | {epochs[arm, tokens]} | {np.exp(loss):.2f} | "
                f"{needed:,.0f}{mark} | {needed / tokens:.2f}x{mark} |"
            )
    return "\n".join(lines)


def scarcity_figure(
    rows: Sequence[Row], path: pathlib.Path, text: str = "test"
) -> None:
    """Draws loss against the amount of text, with the law fitted to arm none."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    losses = mean_losses(rows, text)
    plain = losses["none"]
    law = fit_scaling_law(np.array(list(plain)), np.array(list(plain.values())))
    figure, axes = pyplot.subplots(figsize=(7.2, 4.4), layout="constrained")
    for arm, points in losses.items():
        axes.plot(
            list(points),
            np.exp(list(points.values())),
            "o",
            label=arm,
            color=colour_of(arm),
        )
    amounts = np.geomspace(min(plain), max(plain), 100)
    label = "fit to none: E + B / D^b"
    axes.plot(amounts, np.exp(law.loss(amounts)), color="#4c4c4c", label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("training tokens")
    axes.set_ylabel(f"{text} perplexity")
    axes.grid(alpha=0.25, which="both")
    axes.legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
