"""The data-scarcity curve: loss against text, and what IMM is worth in text."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import numpy as np

from experiments.imm_lm.config import RunConfig
from experiments.imm_lm.report import Row, colour_of, number
from rlm_tf.evaluation import ScalingLaw, fit_scaling_law


def arm_of(row: Row) -> str:
    """Returns the arm of a row as `RunConfig.arm_name` has it."""
    return RunConfig(**row["config"]).arm_name


def mean_losses(rows: Sequence[Row], text: str) -> dict[str, dict[int, float]]:
    """Returns arm -> training tokens -> mean loss over seeds, nats a token."""
    losses: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        perplexity = row["perplexity"][text]
        if perplexity is not None:
            by_amount = losses.setdefault(arm_of(row), {})
            by_amount.setdefault(row["corpus"]["train_tokens"], []).append(
                float(np.log(perplexity))
            )
    return {
        arm: {
            tokens: float(np.mean(values)) for tokens, values in sorted(points.items())
        }
        for arm, points in losses.items()
    }


def can_be_fitted(rows: Sequence[Row]) -> bool:
    """Whether arm none was trained alike on at least three amounts of text."""
    return bool(rows) and len(mean_losses(_alike(rows), "test").get("none", {})) >= 3


def scarcity_table(rows: Sequence[Row], text: str = "test") -> str:
    """Returns a Markdown table with the fitted law and equivalent amounts of text.

    The law is fitted to the runs of arm none with the usual number of epochs; runs with
    another number are listed, not compared. An asterisk marks amounts outside those of
    the fit, where the law extrapolates.
    """
    alike = _alike(rows)
    usual = alike[0]["config"]["epochs"]
    losses, law = mean_losses(alike, text), _law(alike, text)
    plain = losses["none"]
    lines = [
        f"`L(D) = E + B / D^b` of arm none ({text}, {usual} epochs): "
        f"E = {law.irreducible:.3f}, B = {law.amplitude:.3g}, b = {law.exponent:.3f}, "
        f"root mean square error {law.residual:.4f} nats over {len(plain)} amounts."
        f"{_other_fit(rows, alike, text)}",
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
                f"| {tokens:,} | {arm} | {usual} | {np.exp(loss):.2f} | "
                f"{needed:,.0f}{mark} | {needed / tokens:.2f}x{mark} |"
            )
    others = [row for row in rows if row["config"]["epochs"] != usual]
    for row in others:
        perplexity = number(row["perplexity"][text])
        lines.append(
            f"| {row['corpus']['train_tokens']:,} | {arm_of(row)} | "
            f"{row['config']['epochs']} | {perplexity:.2f} | | |"
        )
    return "\n".join(lines)


def _alike(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows with the most frequent number of epochs."""
    numbers = [row["config"]["epochs"] for row in rows]
    usual = max(numbers, key=numbers.count)
    return [row for row in rows if row["config"]["epochs"] == usual]


def _law(rows: Sequence[Row], text: str) -> ScalingLaw:
    plain = mean_losses(rows, text)["none"]
    return fit_scaling_law(np.array(list(plain)), np.array(list(plain.values())))


def _other_fit(rows: Sequence[Row], alike: list[Row], text: str) -> str:
    if len(alike) == len(rows):
        return ""
    law = _law(rows, text)
    return (
        f" With the runs of other epochs as well: E = {law.irreducible:.3f}, "
        f"B = {law.amplitude:.3g}, b = {law.exponent:.3f}."
    )


def scarcity_figure(
    rows: Sequence[Row], path: pathlib.Path, text: str = "test"
) -> None:
    """Draws loss against the amount of text, with the law fitted to arm none."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot, ticker

    alike = _alike(rows)
    losses, law = mean_losses(alike, text), _law(alike, text)
    plain = losses["none"]
    figure, axes = pyplot.subplots(figsize=(7.2, 4.4), layout="constrained")
    for arm, points in losses.items():
        axes.plot(
            list(points),
            np.exp(list(points.values())),
            "o:" if len(points) > 1 else "o",
            linewidth=1,
            label=arm,
            color=colour_of(arm),
        )
    amounts = np.geomspace(min(plain), max(plain), 100)
    label = "fit to none: E + B / D^b"
    axes.plot(amounts, np.exp(law.loss(amounts)), color="#4c4c4c", label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(sorted(plain), [f"{tokens:,}" for tokens in sorted(plain)])
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 1.25, 1.5, 2, 2.5, 3, 4)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlabel("training tokens")
    axes.set_ylabel(f"{text} perplexity")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
