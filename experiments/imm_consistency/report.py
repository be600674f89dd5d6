"""Tables and figures of the study of Proposition 5.1."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from experiments.imm_consistency.study import PUBLISHED_G
from experiments.kit.drawing import distinct, save, table

Numbers = dict[str, Any]


def report(found: Mapping[str, Numbers], folder: pathlib.Path) -> str:
    """Draws what there is into a folder; returns the tables as Markdown."""
    if "curve" in found:
        draw_curve(found["curve"], folder / "imm_consistency_curve.png")
    if "bias" in found:
        draw_bias(found["bias"], folder / "imm_consistency_bias.png")
    return "\n\n".join(tables(found).values()) + "\n"


def tables(found: Mapping[str, Numbers]) -> dict[str, str]:
    """Returns the tables of the parts there are, by the names of the parts."""
    makers = {"proposition": _proposition, "curve": _curve, "bias": _bias}
    return {name: make(found[name]) for name, make in makers.items() if name in found}


def _proposition(numbers: Numbers) -> str:
    titles = (
        "lambda",
        "KL(P, noising minimiser)",
        "f + lambda g there",
        "descent is off by",
        "KL(P, IMM by descent)",
    )
    rows = [
        (
            row["coefficient"],
            f"{row['kl_of_noising_minimiser']:.7f}",
            f"{row['f_plus_lambda_g']:.7f}",
            f"{row['descent_to_noising_minimiser']:.1e}",
            f"{row['kl_of_imm_by_descent']:.1e}",
        )
        for row in numbers["rows"]
    ]
    return (
        f"g of the uniform model: {numbers['g_of_uniform']:.6f} nats (the paper: "
        f"{PUBLISHED_G}). IMM risk of the uniform model: "
        f"{numbers['imm_risk_of_uniform']:.7f} nats.\n\n{table(titles, rows)}"
    )


def _curve(numbers: Numbers) -> str:
    rows = [
        (
            cell["source"],
            "infinite" if cell["coefficient"] is None else cell["coefficient"],
            f"{cell['noising']:.4f}",
            "-" if cell["coefficient"] is None else f"{cell['imm']:.1e}",
        )
        for cell in numbers["cells"]
    ]
    return table(("source", "lambda", "KL(P, Q*), noising", "IMM"), rows)


def _bias(numbers: Numbers) -> str:
    rows = [
        (
            cell["k"],
            f"{cell['bias']:.6f} ± {cell['standard_error']:.6f}",
            f"{cell['predicted']:.5f}",
        )
        for cell in numbers["cells"]
    ]
    return table(("k", "bias, nats", "c / k"), rows)


def draw_curve(numbers: Numbers, path: pathlib.Path) -> None:
    """Draws the distance from the truth against lambda."""
    cells = numbers["cells"]
    names = distinct(cell["source"] for cell in cells)
    figure, panels = plt.subplots(
        1, len(names), figsize=(5 * len(names), 3.8), layout="constrained"
    )
    for axes, name in zip(panels, names, strict=True):
        members = [cell for cell in cells if cell["source"] == name]
        known = [cell for cell in members if cell["coefficient"] is not None]
        x = [cell["coefficient"] for cell in known]
        axes.plot(x, [c["noising"] for c in known], "o-", c="#e69f00", label="noising")
        axes.plot(x, [c["imm"] for c in known], "o-", c="#0072b2", label="IMM")
        (limit,) = [c["noising"] for c in members if c["coefficient"] is None]
        axes.axhline(limit, color="black", ls=":", label="P_bar itself")
        axes.set(xscale="log", xlabel="lambda", ylabel="KL(P, Q*), nats", title=name)
    save(figure, path)


def draw_bias(numbers: Numbers, path: pathlib.Path) -> None:
    """Draws the bias of the loss against the number of samples."""
    cells = numbers["cells"]
    figure, axes = plt.subplots(figsize=(5.5, 3.8), layout="constrained")
    k = [cell["k"] for cell in cells]
    axes.errorbar(
        k,
        [cell["bias"] for cell in cells],
        [2 * cell["standard_error"] for cell in cells],
        fmt="o",
        color="#0072b2",
        label="measured, two standard errors",
    )
    axes.plot(k, [c["predicted"] for c in cells], c="black", lw=1, label="c / k")
    axes.set(xscale="log", yscale="log", xlabel="k, samples")
    axes.set_ylabel("bias of the IMM loss at Q = P, nats")
    save(figure, path)
