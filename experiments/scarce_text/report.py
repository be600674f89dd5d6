"""Tables and figures of what wins where text is scarce."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import distinct, save, table, with_deviation
from experiments.kit.paired import at
from experiments.scarce_text.arms import DECOUPLED_SCALE, ENSEMBLE, PEERS
from experiments.scarce_text.differences import Row, less_in_parts, mixed_less

# What a row must have to be reported.
NEEDS = ("study", "arm", "corpus", "fraction", "seed", "mixed_valid", "mixed_test")
# Perplexity at the end, valid and test: Zaremba et al. (2014), Table 1.
PUBLISHED = {
    "zaremba-small": "120.7 / 114.5",
    "zaremba-medium": "86.2 / 82.7",
}
# Of 2 x 1,500 units, the best of many restarts: the IMM paper, Table 2.
_LARGER = {
    "2 x 1,500 units, dropout (IMM, Table 2)": "81.6 / 77.5",
    "2 x 1,500 units, noising (IMM, Table 2)": "76.7 / 73.9",
    "2 x 1,500 units, IMM (IMM, Table 2)": "76.0 / 73.3",
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
        "projected": projected,
    }
    for study, maker in makers.items():
        own = of_study(rows, study)
        if own:
            found[study] = maker(own)
    means = [row for row in of_study(rows, "arms") if "gain" in row]
    if means:
        found["ensembles"] = ensembles(means)
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
    """Returns rows by arm: n-grams first, then by what mixtures have on valid text.

    The mixtures of arms whose n-grams count more text have such an n-gram.
    """
    found = {
        arm: sorted((r for r in rows if r["arm"] == arm), key=lambda row: row["seed"])
        for arm in distinct(row["arm"] for row in rows)
    }

    def place(arm: str) -> tuple[bool, float]:
        return arm not in PEERS, float(np.mean([reached(row) for row in found[arm]]))

    return {arm: found[arm] for arm in sorted(found, key=place)}


def reached(row: Row) -> float:
    """Returns what a row is judged by: perplexity of valid text, mixed.

    With Kneser-Ney 5 of what its n-grams may count; of what diverged it is infinite.
    """
    if row["mixed_valid"] is None:
        return math.inf
    if "counted" in row:
        return float(row["counted"][_OF_ALL]["valid"]["mixed"])
    return float(row["mixed_valid"])


_OF_ALL = "kneser-ney-5"
_SCORES = (
    "arm",
    "seeds",
    "valid",
    "test",
    "test, less `none`, ± 2 standard errors",
    "mixed with Kneser-Ney 5: valid",
    "test",
    "its weight",
    "mixed test, less `none`, ± 2 standard errors",
    "less `noising`",
    "mixed with Kneser-Ney 2: test",
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
    return (
        arm,
        _seeds(arm, own),
        *(with_deviation([row[name] for row in own]) for name in ("valid", "test")),
        mixed_less("none", arms, arm, ("test",)),
        *(
            with_deviation([row[name] for row in own])
            for name in ("mixed_valid", "mixed_test", "mu")
        ),
        *(mixed_less(base, arms, arm) for base in ("none", "noising")),
        with_deviation([row["mixed_2"]["test"] for row in own if "mixed_2" in row]),
        with_deviation(trained, 0),
    )


def _seeds(arm: str, own: Sequence[Row]) -> int | str:
    """Returns how many seeds an arm has; an ensemble is one row of several."""
    if arm in PEERS:
        return ""
    return len(own[0]["seeds"]) if arm.startswith(ENSEMBLE) else len(own)


def trials(rows: Sequence[Row]) -> str:
    """Returns the table of all trials, best first by arm."""
    lines = []
    for arm, own in by_arms(rows).items():
        for row in sorted(own, key=reached):
            alone, mixed, mu = (row[name] for name in ("valid", "mixed_valid", "mu"))
            of_all = f"{reached(row):.2f}" if "counted" in row else ""
            lines.append(
                (
                    arm,
                    row["trial"],
                    "diverged" if alone is None else f"{alone:.2f}",
                    "" if mixed is None else f"{mixed:.2f}",
                    "" if mu is None else f"{mu:.2f}",
                    of_all,
                    _values(row["values"]),
                )
            )
    titles = (
        "arm",
        "trial",
        "valid",
        "mixed, valid",
        "weight of the n-gram",
        "mixed with one of all text, valid",
        "with",
    )
    return table(titles, lines, (0, 6))


def _values(values: Mapping[str, Any]) -> str:
    """Returns the settings of a trial; decay is what the optimiser or loss has."""
    shown = dict(values)
    if "decoupled" in shown:
        scale = DECOUPLED_SCALE if shown.pop("decoupled") else 1.0
        name = "l2" if scale == 1.0 else "weight decay"
        shown[name] = scale * shown.pop("decay")
    return ", ".join(f"{name} {value:.3g}" for name, value in shown.items())


def ensembles(rows: Sequence[Row]) -> str:
    """Returns the table of what means of seeds gain over their members, mixed.

    And how far they are above that of `none`, see `less_in_parts`.
    """
    base = [row for row in rows if row["arm"] == ENSEMBLE + "none"]
    lines = [
        (
            row["arm"],
            len(row["seeds"]),
            f"{row['mixed_test']:.2f}",
            f"{row['gain']['nats']:.4f} ± {2 * row['gain']['error']:.4f}",
            f"{100 * (1 - row['gain']['ratio']):.1f}",
            less_in_parts(row, base),
        )
        for row in sorted(rows, key=reached)
    ]
    titles = (
        "mean of",
        "seeds",
        "mixed test",
        "nats a token less than its members, ± 2 standard errors",
        "perplexity less, %",
        "mixed test, less `ensemble-none`, ± 2 standard errors of the text alone",
    )
    return table(titles, lines)


def counted(rows: Sequence[Row]) -> str:
    """Returns the table of mixtures with n-grams of all of the training text."""
    arms = by_arms(rows)
    names = ("kneser-ney-2", "kneser-ney-5")
    lines = []
    for arm, own in arms.items():
        cells = [with_deviation([row["test"] for row in own])]
        for name in names:
            place = ("counted", name, "test", "mixed")
            values = [at(row, place) for row in own]
            cells += [with_deviation(values), mixed_less("none", arms, arm, place)]
        lines.append((arm, _seeds(arm, own), *cells))
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
    """Returns the table of arms by the amount of text."""
    lines = []
    for fraction in sorted({row["fraction"] for row in rows}):
        arms = by_arms([row for row in rows if row["fraction"] == fraction])
        for arm, own in arms.items():
            lines.append((f"{fraction:g}", *_scores(arm, own, arms)))
    return table(("share of the text", *_SCORES), lines, (0, 1))


def by_corpus(rows: Sequence[Row]) -> str:
    """Returns the table of arms on other corpora."""
    lines = []
    for corpus in distinct(row["corpus"] for row in rows):
        arms = by_arms([row for row in rows if row["corpus"] == corpus])
        lines += [
            (corpus, *_scores(arm, own, arms), _bits(own)) for arm, own in arms.items()
        ]
    titles = ("corpus", *_SCORES, "mixed test, bits a byte")
    return table(titles, lines, (0, 1))


def _bits(own: Sequence[Row]) -> str:
    """Returns what can be compared between texts of unlike tokens."""
    known = [row["bits_per_byte"]["test"] for row in own if "bits_per_byte" in row]
    return with_deviation(known, 3)


def published(rows: Sequence[Row]) -> str:
    """Returns the table of published models, beside what was published."""
    lines = [
        (
            arm,
            _seeds(arm, own),
            with_deviation([row["valid"] for row in own]),
            with_deviation([row["test"] for row in own]),
            PUBLISHED.get(arm, ""),
            with_deviation([row["mixed_test"] for row in own]),
            with_deviation([row["mixed_2"]["test"] for row in own if "mixed_2" in row]),
            with_deviation(
                [row["seconds"] / 3600 for row in own if row.get("seconds")], 1
            ),
        )
        for arm, own in by_arms(rows).items()
    ]
    lines += [(name, "", "", "", paper, "", "", "") for name, paper in _LARGER.items()]
    titles = (
        "model",
        "seeds",
        "valid",
        "test",
        "published: valid / test",
        "mixed with Kneser-Ney 5, test",
        "with Kneser-Ney 2, test",
        "hours",
    )
    return table(titles, lines)


def projected(rows: Sequence[Row]) -> str:
    """Returns the table of hours that published models would take."""
    lines = [
        (
            row["arm"],
            f"{row['step_seconds']:.2f}",
            f"{row['steps']:,}",
            f"{row['hours']:.1f}",
        )
        for row in rows
    ]
    return table(("model", "seconds of a step", "steps", "hours"), lines)


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
    """Draws test perplexity against the amount of text: alone dashed, mixed solid."""
    figure, axes = plt.subplots(figsize=(8.5, 4), layout="constrained")
    amounts = sorted({row["train_tokens"] for row in rows})
    colours = [f"C{number}" for number in range(10)]
    for colour, (arm, own) in zip(colours, by_arms(rows).items(), strict=False):
        seen = [amount for amount in amounts if _at(own, amount)]
        # An n-gram gains nothing from another.
        for name, style, how in _DRAWN[arm in PEERS :]:
            means = [np.mean([row[name] for row in _at(own, n)]) for n in seen]
            axes.plot(seen, means, style, color=colour, label=f"{arm}, {how}")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="tokens to train on",
        ylabel="test perplexity",
    )
    axes.set_xticks(amounts, [f"{amount:,}" for amount in amounts])
    ends = (np.floor, min), (np.ceil, max)
    low, high = (
        int(50 * rounded(of(row["mixed_test"] for row in rows) / 50))
        for rounded, of in ends
    )
    axes.set_yticks(range(low, high + 1, 50), map(str, range(low, high + 1, 50)))
    axes.minorticks_off()
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(figure, path)


_DRAWN = (
    ("mixed_test", "o-", "mixed with Kneser-Ney 5"),
    ("test", "x--", "alone"),
)


def _at(rows: Sequence[Row], amount: int) -> list[Row]:
    return [row for row in rows if row["train_tokens"] == amount]
