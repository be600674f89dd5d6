"""The data-scarcity curve: loss against text, and what IMM is worth in text."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.imm_lm.config import RunConfig
from experiments.imm_lm.curves import colour_of
from experiments.imm_lm.report import Row, number
from experiments.imm_lm.studies import TUNED
from experiments.kit.drawing import table
from rlm_tf.evaluation import ScalingLaw, fit_scaling_law

_TEXTS = ("valid", "test")


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


def law_table(rows: Sequence[Row]) -> str:
    """Returns a Markdown table of the law of loss against text, fitted to arm none.

    Once to the runs with the usual number of epochs and, where there are others, once
    to all.
    """
    alike = _alike(rows)
    fitted = {f"{alike[0]['config']['epochs']} epochs": alike}
    if len(alike) < len(rows):
        fitted["any number of epochs"] = list(rows)
    lines = []
    for what, members in fitted.items():
        for text in _TEXTS:
            law = _law(members, text)
            lines.append(
                (
                    f"{text}, {what}",
                    len(mean_losses(members, text)["none"]),
                    f"{law.irreducible:.2f}",
                    f"{law.amplitude:.1f}",
                    f"{law.exponent:.3f}",
                    f"{law.residual:.4f}",
                )
            )
    titles = ("fitted to", "amounts", "E", "B", "b", "root mean square error, nats")
    return table(titles, lines)


def scarcity_table(rows: Sequence[Row]) -> str:
    """Returns a Markdown table of perplexities and what they are worth in text.

    The worth is by how much more text arm none would reach the same perplexity, by the
    law fitted to its runs with the usual number of epochs; runs with another number are
    listed, not compared. An asterisk marks amounts outside those of the fit, where the
    law extrapolates. Cells are valid / test.
    """
    alike = _alike(rows)
    laws = {text: _law(alike, text) for text in _TEXTS}
    amounts = list(mean_losses(alike, "test")["none"])
    groups: dict[tuple[int, int, int, str], list[Row]] = {}
    for row in rows:
        arm, epochs = arm_of(row), row["config"]["epochs"]
        # Runs of the usual number of epochs first, arms in the order of their tuning.
        place = list(TUNED).index(arm) if arm in TUNED else len(TUNED)
        tokens = row["corpus"]["train_tokens"]
        order = (epochs != alike[0]["config"]["epochs"], tokens, place, arm)
        groups.setdefault(order, []).append(row)
    lines = []
    for (other, tokens, _, arm), members in sorted(groups.items()):
        worth = [
            "" if other else _worth(laws[text], members, text, amounts)
            for text in _TEXTS
        ]
        lines.append(
            (
                f"{tokens:,}",
                arm,
                members[0]["config"]["epochs"],
                _both([row["perplexity"] for row in members]),
                _both([row["interpolation"]["same"] for row in members]),
                " / ".join(filter(None, worth)),
            )
        )
    titles = (
        "training tokens",
        "arm",
        "epochs",
        "perplexity",
        "mixed with P_hat",
        "worth",
    )
    return table(titles, lines, left=(1,))


def _both(found: Sequence[Mapping[str, float | None]]) -> str:
    means = (np.mean([number(each[text]) for each in found]) for text in _TEXTS)
    return " / ".join(f"{mean:.2f}" for mean in means)


def _worth(
    law: ScalingLaw, rows: Sequence[Row], text: str, amounts: Sequence[int]
) -> str:
    tokens = rows[0]["corpus"]["train_tokens"]
    losses = mean_losses(rows, text).get(arm_of(rows[0]))
    if losses is None:
        return "-"
    needed = law.equivalent_tokens(losses[tokens])
    inside = 0.99 * min(amounts) <= needed <= 1.01 * max(amounts)
    return f"{needed / tokens:.2f}x{'' if inside else '*'}"


def _alike(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows with the most frequent number of epochs."""
    numbers = [row["config"]["epochs"] for row in rows]
    usual = max(numbers, key=numbers.count)
    return [row for row in rows if row["config"]["epochs"] == usual]


def _law(rows: Sequence[Row], text: str) -> ScalingLaw:
    plain = mean_losses(rows, text)["none"]
    return fit_scaling_law(np.array(list(plain)), np.array(list(plain.values())))


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
