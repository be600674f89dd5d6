"""The tables of the study."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from experiments.kit.drawing import table, with_deviation
from experiments.own_text.texts import NAMES

NEEDS = ("text", "arm", "seed", "scores.model.test.bits_per_byte", "plan", "bytes")

Row = dict[str, Any]
# In the order of the columns.
SMALL_ARMS = ("none", "longer", "imm")


def tables_of(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables: what was reached and chosen, and what IMM is worth."""
    return {"reached": _reached(rows), "chosen": _chosen(rows), "imm": _imm(rows)}


def mixture_gains(rows: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """Returns what the mixture takes off its n-gram's bits per byte, in percent.

    Returns:
        Mean over seeds and standard error, for each text with at least two seeds.
    """
    return _gains(rows, ("mixture", "mixture"), ("mixture", "n-gram"))


def _gains(
    rows: Sequence[Row], ours: tuple[str, str], others: tuple[str, str]
) -> dict[str, tuple[float, float]]:
    """Returns by how many percent bits per byte are below others, as `mixture_gains`.

    Args:
        rows: Of the study.
        ours: An arm, and a model in its report.
        others: The same of what is compared with.
    """
    gains = {}
    for name in NAMES:
        own, beside = (_bits_by_seed(rows, name, *each) for each in (ours, others))
        percent = [
            100 * (1 - own[seed] / beside[seed])
            for seed in sorted(own)
            if seed in beside
        ]
        if len(percent) > 1:
            gains[name] = _mean_and_error(percent)
    return gains


def imm_gains(
    rows: Sequence[Row], beside: str = "none"
) -> dict[str, tuple[float, float]]:
    """Returns what IMM takes off the bits per byte of each test text.

    Args:
        rows: Of the study.
        beside: The arm without: `none`, as many epochs, or `longer`, at least as long.

    Returns:
        The mean over seeds of the difference to the model without, and its standard
        error; for texts with at least two seeds of both.
    """
    gains = {}
    for name in NAMES:
        none, imm = (_bits_by_seed(rows, name, arm, "model") for arm in (beside, "imm"))
        both = [none[seed] - imm[seed] for seed in sorted(none) if seed in imm]
        if len(both) > 1:
            gains[name] = _mean_and_error(both)
    return gains


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return float(np.mean(values)), float(error)


def _reached(rows: Sequence[Row]) -> str:
    gains, lines = mixture_gains(rows), []
    served = ("mixture", "mixture")
    others = {
        "earlier": _gains(rows, served, ("earlier", "mixture")),
        "noising": _gains(rows, ("noising", "mixture"), served),
    }
    for name, mixed in _mixtures_by_text(rows):
        gain = "{:.1f} ± {:.1f}".format(*gains[name]) if name in gains else ""
        changes = {arm: found.get(name) for arm, found in others.items()}
        lines.append(
            (
                name,
                f"{len(mixed)}",
                *(
                    _bits(rows, name, "mixture", model)
                    for model in ("n-gram", "model", "mixture")
                ),
                gain,
                *(
                    cell
                    for arm, change in changes.items()
                    for cell in (
                        _bits(rows, name, arm, "mixture"),
                        "" if change is None else "{:.1f} ± {:.1f}".format(*change),
                    )
                ),
                _bits(rows, name, "mixture", "dynamic evaluation"),
            )
        )
    return table(
        (
            "text",
            "seeds",
            "n-gram",
            "model",
            "mixture (served)",
            "below the n-gram, % ± standard error",
            "mixture by earlier defaults",
            "below that, % ± standard error",
            "mixture, trained with noise (0.1)",
            "that below the mixture, % ± standard error",
            "model, dynamic evaluation",
        ),
        lines,
    )


def _chosen(rows: Sequence[Row]) -> str:
    return table(
        ("text", "kB", "vocabulary", "width", "epochs", "SavedModel, MB", "minutes"),
        [
            (
                name,
                f"{mixed[0]['bytes'] / 1000:,.0f}",
                f"{mixed[0]['plan']['vocabulary_size']:,} {mixed[0]['plan']['rule']}",
                _range(row["plan"]["width"] for row in mixed),
                _range(row["training"]["epochs"] for row in mixed),
                _range((row["saved_model_megabytes"] for row in mixed), 1),
                _range((row["seconds"] / 60 for row in mixed), 1),
            )
            for name, mixed in _mixtures_by_text(rows)
        ],
    )


def _mixtures_by_text(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    by_text = [
        (name, [row for row in rows if (row["text"], row["arm"]) == (name, "mixture")])
        for name in NAMES
    ]
    return [(name, found) for name, found in by_text if found]


def _range(values: Iterable[float], digits: int = 0) -> str:
    shown = [f"{value:.{digits}f}" for value in sorted(values)]
    return shown[0] if shown[0] == shown[-1] else f"{shown[0]} to {shown[-1]}"


def _imm(rows: Sequence[Row]) -> str:
    gains, over_longer, lines = imm_gains(rows), imm_gains(rows, "longer"), []
    for name, (gain, error) in gains.items():
        first = next(row for row in rows if (row["text"], row["arm"]) == (name, "imm"))
        lines.append(
            (
                name,
                f"{first['bytes'] / 1000:,.0f}",
                f"{len(_bits_by_seed(rows, name, 'imm', 'model'))}",
                f"{first['scores']['n-gram']['test']['bits_per_byte']:.3f}",
                *(_bits(rows, name, arm, "model") for arm in SMALL_ARMS),
                f"{gain:.3f} ± {error:.3f}",
                "{:.3f} ± {:.3f}".format(*over_longer[name])
                if name in over_longer
                else "",
                " / ".join(_seconds(rows, name, arm) for arm in SMALL_ARMS),
                *(_bits(rows, name, arm, "mixture") for arm in ("none", "imm")),
            )
        )
    return table(
        (
            "text",
            "kB",
            "seeds",
            "n-gram",
            "model",
            "model, longer",
            "model with IMM",
            "gain ± standard error",
            "gain over longer",
            "training, seconds",
            "mixture",
            "mixture with IMM",
        ),
        lines,
    )


def _bits(rows: Sequence[Row], name: str, arm: str, model: str) -> str:
    values = list(_bits_by_seed(rows, name, arm, model).values())
    return with_deviation(values, 3) if values else ""


def _seconds(rows: Sequence[Row], name: str, arm: str) -> str:
    found = [
        row["training"]["seconds"]
        for row in rows
        if (row["text"], row["arm"]) == (name, arm)
    ]
    return f"{np.mean(found):.0f}" if found else "-"


def _bits_by_seed(
    rows: Sequence[Row], name: str, arm: str, model: str
) -> dict[int, float]:
    return {
        row["seed"]: row["scores"][model]["test"]["bits_per_byte"]
        for row in rows
        if (row["text"], row["arm"]) == (name, arm) and model in row["scores"]
    }
