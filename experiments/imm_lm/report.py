"""Tables that all studies of `imm_lm` share, from rows of results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.kit.drawing import table, with_deviation

Row = dict[str, Any]
# What a row must have to be reported.
NEEDS = (
    "name",
    "config.arm",
    "config.fraction",
    "config.epochs",
    "corpus.name",
    "corpus.train_tokens",
    "perplexity.valid",
    "perplexity.test",
    "interpolation.same.valid",
    "interpolation.same.test",
    "restricted_perplexity.same",
    "induced_perplexity.valid",
    "induced_perplexity.test",
    "parameters",
    "machine",
    "curve",
)

_TEXTS = ("valid", "test")


def group_of(name: str) -> str:
    """Returns a run's name without its seed."""
    return re.sub(r"-seed\d+$", "", name)


def without_part(name: str) -> str:
    """Returns a group's name without the part of the text that it was trained on."""
    return re.sub(r"-\d+th$", "", name)


def grouped(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Returns the rows of each group, groups in the order of their first row."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(group_of(row["name"]), []).append(row)
    return groups


def spread(values: Sequence[float | None]) -> str:
    """Returns `mean ± standard deviation`, or the one value there is."""
    known = [value for value in values if value is not None]
    return with_deviation(known) if known else "-"


def number(value: float | None) -> float:
    """Returns a number of a row; rows write null for what is not finite."""
    return float("nan") if value is None else float(value)


def perplexity_table(
    rows: Sequence[Row],
    times: bool = True,
    published: Mapping[str, Sequence[float]] | None = None,
) -> str:
    """Returns a Markdown table: one line a group, mean and deviation over seeds.

    Args:
        rows: A row a run.
        times: Whether there is a column with the time of a step.
        published: What others report: validation and test perplexity.
    """
    sources = {"same": "mixed with P_hat"}
    if any(row["config"]["fraction"] < 1 for row in rows):
        sources["all"] = "mixed with P_hat of all text"
    mixed = [f"{label}: valid | test | mu" for label in sources.values()]
    titles = ["arm", "seeds", "valid", "test", *" | ".join(mixed).split(" | ")]
    lines = []
    for name, members in _labelled(rows).items():
        cells = [
            name,
            len(members),
            spread([row["perplexity"]["valid"] for row in members]),
            spread([row["perplexity"]["test"] for row in members]),
            *[
                spread([row["interpolation"][source][key] for row in members])
                for source in sources
                for key in ("valid", "test", "mu")
            ],
        ]
        lines.append([*cells, spread([row.get("step_ms") for row in members])])
    for name, found in (published or {}).items():
        known = [name, "-", *map(str, found)]
        lines.append([*known, *["-"] * (len(titles) + 1 - len(known))])
    if times:
        return table([*titles, "ms/step"], lines)
    return table(titles, [line[:-1] for line in lines])


def induced_table(
    rows: Sequence[Row], published: Mapping[str, Sequence[float]] | None = None
) -> str:
    """Returns Table 1 of the paper for these models: perplexity on the bigram task.

    Left out are tokens whose short context the training text lacks; for Kneser-Ney,
    those it thinks impossible.

    Args:
        rows: A row a run.
        published: What others report: training, validation and test perplexity.
    """
    lines: list[Sequence[Any]] = []
    for name, members in _labelled(rows).items():
        induced = [row["induced_perplexity"] for row in members]
        mixture = members[0]["config"]["arm"] == "interpolation"
        lines.append(
            (
                f"{name} (the model in it)" if mixture else name,
                *(
                    spread([each[text]["perplexity"] for each in induced])
                    for text in ("train", *_TEXTS)
                ),
                " / ".join(str(induced[0][text]["left_out"]) for text in _TEXTS),
            )
        )
    fractions = {row["config"]["fraction"] for row in rows}
    if len(fractions) == 1:
        sources = ("same",) if fractions == {1.0} else ("same", "all")
        lines += [_kneser_ney_line(rows[0], source) for source in sources]
    for name, found in (published or {}).items():
        lines.append((name, *(f"{value:.2f}" for value in found), "-"))
    titles = ("model", "train", *_TEXTS, "left out (valid / test)")
    return table(titles, lines)


def _labelled(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Returns the rows of each group; of one part of the text, names lack it."""
    groups = grouped(rows)
    if len({row["config"]["fraction"] for row in rows}) > 1:
        return groups
    return {without_part(name): members for name, members in groups.items()}


def _kneser_ney_line(row: Row, source: str) -> Sequence[str]:
    known = row["restricted_perplexity"][source]
    perplexities = [
        f"{known[text]['perplexity']:.2f}" if text in known else "-"
        for text in ("train", *_TEXTS)
    ]
    impossible = " / ".join(str(known[text]["impossible"]) for text in _TEXTS)
    name = f"Kneser-Ney of {'all' if source == 'all' else 'the same'} text"
    return (name, *perplexities, impossible)


def rates_line(rows: Sequence[Row]) -> str:
    """Returns the learning rates with which training ended.

    Where they differ, some runs are further on than others.
    """
    texts = []
    for name, members in grouped(rows).items():
        rates = [row["curve"][-1].get("learning_rate", float("nan")) for row in members]
        low, high = f"{min(rates):.2g}", f"{max(rates):.2g}"
        texts.append(f"{name} {low if low == high else f'{low} to {high}'}")
    return f"Learning rate of the last epoch: {', '.join(texts)}."


def provenance(rows: Sequence[Row]) -> str:
    """Returns a sentence on the models, the machine and the code behind rows."""
    parameters = sorted({row["parameters"] for row in rows})
    commits = sorted({row.get("commit") or "unknown" for row in rows})
    others = [row["other_cores"] for row in rows if row.get("other_cores") is not None]
    busy = f"; other programs used {max(others):.1f} cores at most" if others else ""
    commands = sum("command" in row for row in rows)
    every = "Every row holds" if commands == len(rows) else f"{commands} rows hold"
    return (
        f"Parameters: {', '.join(f'{n:,}' for n in parameters)}. Machine: "
        f"{', '.join(sorted({row['machine'] for row in rows}))}{busy}. Commits: "
        f"{', '.join(commits)}. {every} the command."
    )
