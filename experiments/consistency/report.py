"""Tables and figures of the study of Proposition 5.1."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from experiments.consistency.study import PUBLISHED_G

Numbers = dict[str, Any]


def report(found: Mapping[str, Numbers], folder: pathlib.Path) -> str:
    """Draws what there is into a folder; returns the tables as Markdown."""
    texts = []
    if "proposition" in found:
        texts.append(_proposition(found["proposition"]))
    if "curve" in found:
        texts.append(_curve(found["curve"], folder / "imm_consistency_curve.png"))
    if "bias" in found:
        texts.append(_bias(found["bias"], folder / "imm_consistency_bias.png"))
    return "\n\n".join(texts) + "\n"


def _proposition(numbers: Numbers) -> str:
    lines = [
        f"g of the uniform model: {numbers['g_of_uniform']:.6f} nats (the paper: "
        f"{PUBLISHED_G}). IMM risk of the uniform model: "
        f"{numbers['imm_risk_of_uniform']:.7f} nats.",
        "",
        "| lambda | KL(P, noising minimiser) | f + lambda g there | descent reaches it "
        "to | KL(P, IMM by descent) |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in numbers["rows"]:
        cells = (
            row["coefficient"],
            f"{row['kl_of_noising_minimiser']:.7f}",
            f"{row['f_plus_lambda_g']:.7f}",
            f"{row['descent_to_noising_minimiser']:.1e}",
            f"{row['kl_of_imm_by_descent']:.1e}",
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _curve(numbers: Numbers, path: pathlib.Path) -> str:
    cells = numbers["cells"]
    names = list(dict.fromkeys(cell["source"] for cell in cells))
    figure, panels = plt.subplots(
        1, len(names), figsize=(5 * len(names), 3.8), layout="constrained"
    )
    lines = [
        "| source | lambda | KL(P, Q*), noising | IMM |",
        "| --- | ---: | ---: | ---: |",
    ]
    for axes, name in zip(panels, names, strict=True):
        members = [cell for cell in cells if cell["source"] == name]
        known = [cell for cell in members if cell["coefficient"] is not None]
        x = [cell["coefficient"] for cell in known]
        axes.plot(x, [c["noising"] for c in known], "o-", c="#e69f00", label="noising")
        axes.plot(x, [c["imm"] for c in known], "o-", c="#0072b2", label="IMM")
        (limit,) = [c["noising"] for c in members if c["coefficient"] is None]
        axes.axhline(limit, color="black", ls=":", label="P_bar itself")
        axes.set(xscale="log", xlabel="lambda", title=name)
        axes.set_ylabel("KL(P, Q*), nats")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
        for cell in members:
            coefficient = cell["coefficient"]
            imm = "-" if cell["imm"] is None else f"{cell['imm']:.1e}"
            lines.append(
                f"| {name} | {'infinite' if coefficient is None else coefficient} | "
                f"{cell['noising']:.4f} | {imm} |"
            )
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return "\n".join(lines)


def _bias(numbers: Numbers, path: pathlib.Path) -> str:
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
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    lines = ["| k | bias, nats | c / k |", "| ---: | ---: | ---: |"]
    for cell in cells:
        lines.append(
            f"| {cell['k']} | {cell['bias']:.5f} ± {cell['standard_error']:.5f} | "
            f"{cell['predicted']:.5f} |"
        )
    return "\n".join(lines)
