"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.kit.about import About, MadeBy
from experiments.kit.paired import at
from experiments.kit.rows import Rows
from experiments.scarce_text.arms import ENSEMBLE, LONGER, PEERS
from experiments.scarce_text.differences import less_in_parts, mixed_less
from experiments.scarce_text.factors import (
    Curve,
    factor_of,
    factors,
    tuned_curves,
    untuned_curves,
)
from experiments.scarce_text.report import NEEDS, by_arms, of_study
from experiments.scarce_text.report import tables as tables_of_rows

_MIXED, _BIGRAM = "kneser-ney-5", "kneser-ney-2"
_COMMAND = "python -m experiments.scarce_text --preset={preset} {seeds}--data_dir=DATA"


def _command(preset: str, seeds: str = "--seeds=1,2,3 ") -> str:
    return _COMMAND.format(preset=preset, seeds=seeds)


ABOUT = About(
    "IMM, Section 6, on a strong base; no table",
    "Which recipe wins on 116,000 words, alone and beside n-grams?",
    _command("small"),
    "12 h, 1 core",
)
_MADE_BY: MadeBy = {
    "trials": (
        _command("search", ""),
        _command("trials", ""),
        _command("counted-trials", ""),
    ),
    **dict.fromkeys(("arms", "ensembles", "frequency", "context"), _command("small")),
    "factors": (_command("small"), _command("curve")),
    "counted": _command("counted"),
    "curve": _command("curve"),
    "corpora": (_command("corpora"), _command("shakespeare")),
    "published": (_command("published", ""), _command("published-medium", "")),
    "projected": _command("projected", ""),
}


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    rows = Rows(folder).read_all(NEEDS)
    found = tables_of_rows(rows)
    arms = _trained(rows)
    if arms:
        n_grams = by_arms(of_study(rows, "arms")).get(_MIXED, [])
        shown = {**arms, **({_MIXED: n_grams} if n_grams else {})}
        found["factors"] = factors(shown, _recipes(rows, folder))
    return found


def _recipes(
    rows: Sequence[Mapping[str, Any]], folder: pathlib.Path
) -> dict[str, Curve]:
    both = [*of_study(rows, "curve"), *of_study(rows, "arms")]
    return {**untuned_curves(folder.parent), **tuned_curves(both)}


def _trained(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Returns rows of study `arms` by arm, the best first, without n-grams."""
    arms = by_arms(of_study(rows, "arms"))
    return {arm: own for arm, own in arms.items() if arm not in PEERS}


# Of tables that there are rows of.
MADE_BY: MadeBy = {
    name: command
    for name, command in _MADE_BY.items()
    if name in tables(pathlib.Path(__file__).parent)
}


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder).read_all(NEEDS)
    trained = _trained(rows)
    if not trained:
        return "The comparison was not run yet"
    arms = by_arms(of_study(rows, "arms"))
    best = next(iter(trained))

    def mean(arm: str) -> str:
        return f"{np.mean([row['mixed_test'] for row in arms[arm]]):.1f}"

    others = [arm for arm in trained if arm not in (best, "none")]
    behind = ", ".join(
        f"{arm} {mixed_less('none', arms, arm)}"
        for arm in others
        if not arm.startswith(ENSEMBLE) and "none" in arms
    )
    worth = ", ".join(
        f"{factor_of(trained[best], curve)} over {name}"
        for name, curve in _recipes(rows, folder).items()
    )
    n_gram = f" (which has {mean(_MIXED)})" if _MIXED in arms else ""
    than = mixed_less("none", arms, best)
    means = arms.get(ENSEMBLE + "none", [])
    beside = less_in_parts(arms[best][0], means) if best.startswith(ENSEMBLE) else ""
    return (
        f"Test perplexity, mixed with Kneser-Ney 5{n_gram}: {best} is best, "
        f"{mean(best)}{f', less none {than}' if than else ''}"
        f"{f', less ensemble-none {beside} (of the text alone)' if beside else ''}"
        f"{f'; less none: {behind}' if behind else ''}; data factor of {best}: {worth}"
    )


def values(folder: pathlib.Path) -> dict[str, str]:
    """Returns what other pages repeat: of test text, mixed with Kneser-Ney 5.

    By how much perplexity falls by mixing and by the mean of seeds, how far arms are
    above `none`, and their numbers, also with n-grams of more text (`of_all`); and the
    hours of all trainings.
    """
    rows = Rows(folder).read_all(NEEDS)
    arms = by_arms(of_study(rows, "arms"))

    def mean(arm: str, name: str = "mixed_test") -> float:
        return float(np.mean([row[name] for row in arms[arm]]))

    none, seeds = mean("none"), ENSEMBLE + "none"
    found = {
        "mixed": f"{100 * (1 - none / mean('none', 'test')):.0f} %",
        "ensemble": f"{100 * (1 - mean(seeds) / none):.1f} %",
        "longer": f"{100 * (1 - mean('none-longer') / none):.1f} %",
        "n_gram": f"{mean(_MIXED):.1f}",
    }
    # A training that two studies share was made once.
    own = [row.get("seconds") or 0 for row in rows if "trained_as" not in row]
    found["hours"] = f"{sum(own) / 3600:.0f}"
    counted = by_arms(of_study(rows, "counted"))
    of_all = ("counted", _MIXED, "test", "mixed")
    for arm in ("none", "counted-imm-2"):
        seen = counted[arm]
        found[f"{arm}_of_all"] = f"{np.mean([at(row, of_all) for row in seen]):.1f}"
        found[f"{arm}_of_all_alone"] = f"{np.mean([row['test'] for row in seen]):.1f}"
    for name, place in (
        ("of_all", of_all),
        ("bigram", (*of_all[:1], _BIGRAM, *of_all[2:])),
    ):
        found[f"counted_{name}_less_none"] = mixed_less(
            "none", counted, "counted-imm-2", place
        )
    for arm in arms:
        found[f"{arm}_mixed"] = f"{mean(arm):.1f}"
        found[f"{arm}_alone"] = f"{mean(arm, 'test'):.1f}"
        found[f"{arm}_less_none"] = mixed_less("none", arms, arm)
        if arm.endswith(LONGER):
            base = f"none{LONGER}"
            found[f"{arm}_less_{base}"] = mixed_less(base, arms, arm)
    return found
