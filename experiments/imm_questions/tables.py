"""Tables of the studies of open questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from experiments.kit.drawing import distinct, table

Numbers = dict[str, Any]


def tables(found: Mapping[str, Numbers]) -> dict[str, str]:
    """Returns the tables of the parts there are, by name, in the order of the page."""
    return {
        name: make(found[part])
        for name, (part, make) in _TABLES.items()
        if part in found
    }


# === Cells ===


def mean(cell: Mapping[str, float], digits: int = 3) -> str:
    """Returns the mean of a cell."""
    return f"{cell['mean']:.{digits}f}"


def gain(cell: Mapping[str, float], digits: int = 3) -> str:
    """Returns the gain of a cell and its standard error."""
    return f"{cell['gain']:+.{digits}f} ± {cell['gain_error']:.{digits}f}"


def _both(cell: Mapping[str, float]) -> str:
    return f"{mean(cell)} ({gain(cell)})"


def _perplexities(cell: Numbers) -> str:
    return f"{cell['valid']:.2f} / {cell['test']:.2f}"


def _by_arm_and_size(
    cells: Sequence[Numbers], text: Callable[[Numbers], str] = _both
) -> list[tuple[str, ...]]:
    """Returns one row an arm: its cells at every size."""
    return [
        (arm, *[text(cell) for cell in cells if cell["arm"] == arm])
        for arm in distinct(cell["arm"] for cell in cells)
    ]


def _by_amount(
    titles: Sequence[str], cells: Sequence[Numbers], form: str, digits: int
) -> str:
    """Returns the gains of every arm by what is wrong with P_hat, and how much.

    Args:
        titles: Of the two columns that say so.
        cells: Those of each amount have the same arms.
        form: Of the amounts.
        digits: Of the gains.
    """
    arms = distinct(cell["arm"] for cell in cells)
    rows = []
    for kind, amount in distinct((cell["kind"], cell["amount"]) for cell in cells):
        by_arm = {
            cell["arm"]: gain(cell, digits)
            for cell in cells
            if (cell["kind"], cell["amount"]) == (kind, amount)
        }
        rows.append((kind, f"{amount:{form}}", *[by_arm[arm] for arm in arms]))
    return table((*titles, *arms), rows)


# === Logistic task and grid ===


def _finite_sample(numbers: Numbers) -> str:
    rows = [
        (
            cell["features"],
            cell["size"],
            f"{cell['per_parameter']:.2f}",
            mean(cell["plain"]),
            gain(cell["imm"]),
            cell["ratio"],
        )
        for cell in numbers["cells"]
    ]
    titles = ("features", "n", "n / parameters", "none", "gain of IMM", "ratio")
    return table(titles, rows)


def _restrictions(numbers: Numbers) -> str:
    cells = numbers["cells"]
    sizes = distinct(cell["size"] for cell in cells)
    titles = ("restricted models", *[f"n = {size} (gain)" for size in sizes])
    return table(titles, _by_arm_and_size(cells))


def _coefficient_rules(numbers: Numbers) -> str:
    cells = numbers["cells"]
    sizes = distinct(cell["size"] for cell in cells)
    titles = ("rule", *[f"n = {size} (gain), mean ratio" for size in sizes])
    rows = _by_arm_and_size(cells, lambda cell: f"{_both(cell)}, r {cell['ratio']:.2f}")
    return table(titles, rows)


def _imperfect(numbers: Numbers) -> str:
    text = _by_amount(("P_hat", "amount"), numbers["cells"], "g", 3)
    return (
        f"{text}\n\nGains in test accuracy at n = {numbers['size']} over no IMM, "
        f"{mean(numbers['plain'])}."
    )


def _imperfect_grid(numbers: Numbers) -> str:
    cells = [cell for cell in numbers["grid"] if cell["kind"] != "none"]
    (none,) = [cell for cell in numbers["grid"] if cell["kind"] == "none"]
    text = _by_amount(("target mixed with", "share"), cells, ".1f", 2)
    return (
        f"{text}\n\nGains in return after {numbers['config']['grid_epochs']} epochs "
        f"over no IMM, {mean(none, 2)}."
    )


def _regularisers(numbers: Numbers) -> str:
    rows = [
        (
            cell["size"],
            f"{cell['decay']:g}",
            mean(cell["plain"]),
            mean(cell["imm"]),
            gain(cell["imm"]),
        )
        for cell in numbers["cells"]
    ]
    return table(("n", "weight decay", "none", "imm", "gain"), rows)


# === Digits ===


def _digits(numbers: Numbers) -> str:
    cells = numbers["cells"]
    sizes = distinct(cell["size"] for cell in cells)
    titles = ("arm", *[f"{size} images (gain)" for size in sizes])
    rows = _by_arm_and_size([*cells, *_patch_alone(numbers)])
    return table(titles, rows)


def _patch_alone(numbers: Numbers) -> list[Numbers]:
    """Returns the restricted model's cells: it is one model, whatever the draw.

    So the paired difference varies as the accuracy without IMM does.
    """
    accuracy = numbers["patch_accuracy"]
    return [
        {
            "arm": "the patch alone",
            "size": cell["size"],
            "mean": accuracy,
            "gain": accuracy - cell["mean"],
            "gain_error": cell["error"],
        }
        for cell in numbers["cells"]
        if cell["arm"] == "none"
    ]


# === Language model ===


def _text_restrictions(numbers: Numbers) -> str:
    rows = [
        (cell["arm"], f"{cell['valid']:.2f}", f"{cell['test']:.2f}")
        for cell in numbers["cells"]
    ]
    return (
        f"{table(('restricted models', 'valid', 'test'), rows)}\n\nPerplexity, "
        f"embedded corpus, {numbers['train_tokens']:,} training tokens, one seed."
    )


def _text_coefficients(numbers: Numbers) -> str:
    rows = [
        (cell["arm"], cell["source"], _perplexities(cell)) for cell in numbers["cells"]
    ]
    return (
        f"{table(('arm', 'P_hat of', 'valid / test'), rows, left=(0, 1))}\n\n"
        f"Perplexity, {numbers['train_tokens']:,} training tokens, one seed."
    )


def _text_regularisers(numbers: Numbers) -> str:
    cells = numbers["cells"]
    rows = []
    for key in distinct((cell["dropout"], cell["decay"]) for cell in cells):
        by_arm = {c["arm"]: c for c in cells if (c["dropout"], c["decay"]) == key}
        texts = [_perplexities(by_arm[arm]) for arm in ("none", "imm")]
        ratio = by_arm["imm"]["test"] / by_arm["none"]["test"] - 1
        rows.append((key[0], f"{key[1]:g}", *texts, f"{100 * ratio:+.1f} %"))
    titles = ("dropout", "weight decay", "none", "imm", "test")
    text = table(titles, rows)
    return f"{text}\n\nPerplexity, valid / test, embedded corpus, one seed."


# By name: of which part, and what makes it.
_TABLES = {
    "finite_sample": ("finite_sample", _finite_sample),
    "restrictions": ("restrictions", _restrictions),
    "text_restrictions": ("text_restrictions", _text_restrictions),
    "coefficient_rules": ("coefficient_rules", _coefficient_rules),
    "text_coefficients": ("text_coefficients", _text_coefficients),
    "imperfect": ("imperfect", _imperfect),
    "imperfect_grid": ("imperfect", _imperfect_grid),
    "regularisers": ("regularisers", _regularisers),
    "text_regularisers": ("text_regularisers", _text_regularisers),
    "digits": ("digits", _digits),
}
