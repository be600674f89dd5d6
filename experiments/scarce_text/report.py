"""Tables and figures of what wins where text is scarce."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import distinct, save, table, with_deviation
from experiments.kit.paired import less
from experiments.scarce_text.arms import ENSEMBLE, PEERS

Row = Mapping[str, Any]
# What a row must have to be reported.
NEEDS = ("study", "arm", "corpus", "fraction", "seed", "mixed_valid", "mixed_test")
# Perplexity at the end, valid and test: Zaremba et al. (2014), Table 1, and the IMM
# paper's Table 2 of 1,500 units (none, noising, IMM), test alone.
PUBLISHED = {
    "zaremba-small": "120.7 / 114.5",
    "zaremba-medium": "86.2 / 82.7",
}


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Draws the figures of the rows there are, and returns their tables."""
    curve = of_study(rows, "curve")
    if len({row["fraction"] for row in curve}) > 1:
        draw_curve(curve, folder / "curve.png")
    return "\n\n".join(tables(rows).values())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables of the rows there are, by name."""
    found = {}
    makers = {
        "trials": trials,
        "arms": scores,
        "counted": counted,
        "curve": curves,
        "corpora": by_corpus,
        "published": published,
    }
    for study, maker in makers.items():
        own = of_study(rows, study)
        if own:
            found[study] = maker(own)
    explained = [row for row in of_study(rows, "arms") if "kinds" in row]
    if explained:
        found |= {
            "frequency": kinds(explained, "frequency"),
            "context": kinds(explained, "context"),
        }
    return found


def of_study(rows: Sequence[Row], study: str) -> list[Row]:
    """Returns the rows of a study."""
    return [row for row in rows if row["study"] == study]


def by_arms(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Returns rows by arm: n-grams first, then by what mixtures have on valid text."""
    found = {
        arm: sorted((r for r in rows if r["arm"] == arm), key=lambda row: row["seed"])
        for arm in distinct(row["arm"] for row in rows)
    }

    def place(arm: str) -> tuple[bool, float]:
        mean = float(np.mean([row["mixed_valid"] for row in found[arm]]))
        return arm not in PEERS, mean

    return {arm: found[arm] for arm in sorted(found, key=place)}


_SCORES = (
    "arm",
    "seeds",
    "valid",
    "test",
    "mixed with Kneser-Ney 5: valid",
    "test",
    "its weight",
    "mixed test, less `none`, ± 2 standard errors",
    "less `noising`",
    "minutes",
)


def scores(rows: Sequence[Row]) -> str:
    """Returns the table of arms, alone and mixed."""
    arms = by_arms(rows)
    return table(_SCORES, [_scores(arm, own, arms) for arm, own in arms.items()])


def _scores(
    arm: str, own: Sequence[Row], arms: Mapping[str, Sequence[Row]]
) -> tuple[Any, ...]:
    trained = [row["seconds"] / 60 for row in own if row.get("seconds")]
    # Of an ensemble, what stands in front of its arm.
    number = len(own[0].get("seeds", own)) if arm.startswith(ENSEMBLE) else len(own)
    return (
        arm,
        "" if arm in PEERS else number,
        *(
            with_deviation([row[name] for row in own])
            for name in ("valid", "test", "mixed_valid", "mixed_test", "mu")
        ),
        *(less(base, arms, own, "mixed_test") for base in ("none", "noising")),
        with_deviation(trained, 0) if trained else "",
    )


def trials(rows: Sequence[Row]) -> str:
    """Returns the table of all trials, best first by arm."""
    lines = []
    for arm, own in by_arms(rows).items():
        for row in sorted(own, key=lambda row: row["mixed_valid"]):
            values = ", ".join(f"{k} {v:.3g}" for k, v in row["values"].items())
            lines.append(
                (
                    arm,
                    row["trial"],
                    f"{row['valid']:.2f}",
                    f"{row['mixed_valid']:.2f}",
                    f"{row['mu']:.2f}",
                    values,
                )
            )
    titles = ("arm", "trial", "valid", "mixed, valid", "weight of the n-gram", "with")
    return table(titles, lines, (0, 5))


def counted(rows: Sequence[Row]) -> str:
    """Returns the table of mixtures with n-grams of all of the training text."""
    arms = by_arms(rows)
    names = ("kneser-ney-2", "kneser-ney-5")
    lines = []
    for arm, own in arms.items():
        cells = [with_deviation([row["test"] for row in own])]
        for name in names:
            place = ("counted", name, "test", "mixed")
            values = [row["counted"][name]["test"]["mixed"] for row in own]
            cells += [with_deviation(values), less("none", arms, own, *place)]
        lines.append((arm, len(own), *cells))
    first = rows[0]["counted"]
    peers = [f"{first[name]['test']['kneser_ney']:.2f}" for name in names]
    lines.append(("n-gram alone", "", "", peers[0], "", peers[1], ""))
    titles = (
        "arm",
        "seeds",
        "test, alone",
        "mixed with the bigram of all text",
        "less `none`, ± 2 standard errors",
        "with Kneser-Ney 5 of all text",
        "less `none`",
    )
    return table(titles, lines)


def curves(rows: Sequence[Row]) -> str:
    """Returns mixed test perplexity by the amount of text, and how many times more."""
    lines = []
    for fraction in sorted({row["fraction"] for row in rows}):
        arms = by_arms([row for row in rows if row["fraction"] == fraction])
        for arm, own in arms.items():
            lines.append((f"{fraction:g}", *_scores(arm, own, arms)[:7]))
    return table(("share of the text", *_SCORES[:7]), lines, (0, 1))


def by_corpus(rows: Sequence[Row]) -> str:
    """Returns the table of arms on other corpora."""
    lines = []
    for corpus in distinct(row["corpus"] for row in rows):
        arms = by_arms([row for row in rows if row["corpus"] == corpus])
        lines += [(corpus, *_scores(arm, own, arms)) for arm, own in arms.items()]
    return table(("corpus", *_SCORES), lines, (0, 1))


def published(rows: Sequence[Row]) -> str:
    """Returns the table of published models, beside what was published."""
    lines = [
        (
            arm,
            len(own),
            with_deviation([row["valid"] for row in own]),
            with_deviation([row["test"] for row in own]),
            PUBLISHED.get(arm, ""),
            with_deviation([row["mixed_test"] for row in own]),
            with_deviation([row["seconds"] / 3600 for row in own], 1),
        )
        for arm, own in by_arms(rows).items()
    ]
    titles = (
        "model",
        "seeds",
        "valid",
        "test",
        "published: valid / test",
        "mixed with Kneser-Ney 5, test",
        "hours",
    )
    return table(titles, lines)


_KINDS = {
    "frequency": ("never", "1 to 9", "10 to 99", "100 to 999", "1,000 and more"),
    "context": ("none", "1", "2", "3", "4"),
}


def kinds(rows: Sequence[Row], name: str) -> str:
    """Returns nats of kinds of test tokens, alone and mixed, by arm."""
    lines = []
    for arm, own in by_arms(rows).items():
        for column in ("alone", "mixed"):
            cells = []
            for number in range(len(_KINDS[name])):
                values = [row["kinds"][name][number][column] for row in own]
                known = [value for value in values if value is not None]
                cells.append(f"{np.mean(known):.3f}" if known else "")
            lines.append((arm, column, *cells))
    tokens = [each["tokens"] for each in rows[0]["kinds"][name]]
    titles = [
        f"{kind} ({number:,})"
        for kind, number in zip(_KINDS[name], tokens, strict=True)
    ]
    return table(("arm", "", *titles), lines, (0, 1))


def draw_curve(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws mixed test perplexity against the amount of text."""
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for arm in by_arms(rows):
        own = [row for row in rows if row["arm"] == arm]
        amounts = sorted({row["train_tokens"] for row in own})
        means = [
            np.mean([r["mixed_test"] for r in own if r["train_tokens"] == amount])
            for amount in amounts
        ]
        axes.plot(amounts, means, marker="o", label=arm)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="tokens to train on",
        ylabel="test perplexity, mixed with Kneser-Ney 5",
    )
    axes.legend(frameon=False)
    save(figure, path)
