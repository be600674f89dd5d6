"""Tables and figures of the questions that a small language model answers."""

from __future__ import annotations

import pathlib
from typing import Any

import matplotlib.pyplot as plt

from experiments.kit.drawing import distinct, save, table

Numbers = dict[str, Any]


def restrictions(numbers: Numbers, path: pathlib.Path) -> str:
    """Draws perplexities by restricted models; returns their table."""
    cells = numbers["cells"]
    figure, axes = plt.subplots(figsize=(6.5, 3.5), layout="constrained")
    # Points: bars would have to begin at 0, where differences cannot be seen.
    for place, cell in enumerate(cells):
        axes.plot(cell["test"], place, "o", color="#0072b2")
        axes.annotate(
            f"{cell['test']:.1f}",
            (cell["test"], place),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
    axes.set_yticks(range(len(cells)), [cell["arm"] for cell in cells])
    axes.invert_yaxis()
    axes.margins(x=0.15, y=0.08)
    axes.set_xlabel("test perplexity")
    save(figure, path)
    rows = [(c["arm"], f"{c['valid']:.2f}", f"{c['test']:.2f}") for c in cells]
    return (
        f"{table(('restricted models', 'valid', 'test'), rows)}\n\nPerplexity, "
        f"embedded corpus, {numbers['train_tokens']:,} training tokens, one seed."
    )


def coefficients(numbers: Numbers, path: pathlib.Path) -> str:
    """Draws perplexities by lambda; returns their table."""
    cells = numbers["cells"]
    none = cells[0]
    figure, panels = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    rows = [("none", "", _perplexities(none))]
    for number, source in enumerate(distinct(c["source"] for c in cells[1:])):
        members = [cell for cell in cells if cell["source"] == source]
        fixed = [cell for cell in members if "values" not in cell]
        amounts = [float(cell["arm"].split()[1]) for cell in fixed]
        colour = f"C{number}"
        tests = [cell["test"] for cell in fixed]
        panels[0].plot(amounts, tests, "o-", color=colour, label=f"P_hat of {source}")
        rules = [cell for cell in members if "values" in cell]
        for rule, style in zip(rules, ("--", ":"), strict=True):
            label = f"{rule['arm']}, P_hat of {source}"
            panels[0].axhline(rule["test"], color=colour, ls=style, label=label)
            panels[1].plot(rule["values"], style, color=colour, label=label)
        rows += [(cell["arm"], source, _perplexities(cell)) for cell in members]
    panels[0].axhline(none["test"], color="black", lw=1, label="none")
    panels[0].set(xscale="log", xlabel="lambda", ylabel="test perplexity")
    panels[1].set(xlabel="epoch", ylabel="lambda of the rules")
    save(figure, path)
    return (
        f"{table(('arm', 'P_hat of', 'valid / test'), rows, left=(0, 1))}\n\n"
        f"Perplexity, {numbers['train_tokens']:,} training tokens, one seed."
    )


def regularisers(numbers: Numbers, path: pathlib.Path) -> str:
    """Draws perplexities by dropout and weight decay; returns their table."""
    cells = numbers["cells"]
    figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
    for name, colour in (("none", "#4c4c4c"), ("imm", "#0072b2")):
        members = [c for c in cells if c["arm"] == name and not c["decay"]]
        axes.plot(
            [c["dropout"] for c in members],
            [c["test"] for c in members],
            "o-",
            color=colour,
            label=name,
        )
    axes.set(xlabel="dropout", ylabel="test perplexity")
    save(figure, path)
    rows = []
    for key in distinct((c["dropout"], c["decay"]) for c in cells):
        by_arm = {c["arm"]: c for c in cells if (c["dropout"], c["decay"]) == key}
        texts = [_perplexities(by_arm[arm]) for arm in ("none", "imm")]
        ratio = by_arm["imm"]["test"] / by_arm["none"]["test"] - 1
        rows.append((key[0], f"{key[1]:g}", *texts, f"{100 * ratio:+.1f} %"))
    titles = ("dropout", "weight decay", "none", "imm", "test")
    text = table(titles, rows)
    return f"{text}\n\nPerplexity, valid / test, embedded corpus, one seed."


def _perplexities(cell: Numbers) -> str:
    return f"{cell['valid']:.2f} / {cell['test']:.2f}"
