"""Tables of encoders that were fine-tuned on labelled texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.kit.drawing import distinct, table, with_deviation
from experiments.kit.paired import less

Row = Mapping[str, Any]


def task_table(
    rows: Sequence[Row],
    *,
    order: Sequence[str],
    bases: Sequence[str],
    published: Mapping[tuple[str, str], str] | None = None,
) -> str:
    """Returns the table of scores, 100 times, restarts of a seed averaged.

    Below the arms of each task stand tf-idf and the most frequent class on the same
    examples.

    Args:
        rows: Each with its task, arm, seed, scores by metric (the first one counts),
            seconds, and the peers' scores.
        order: Of arms.
        bases: Arms that others are compared with, seed by seed.
        published: Scores of a paper by task and arm.
    """
    known = published or {}
    lines: list[tuple[Any, ...]] = []
    for task in distinct(row["task"] for row in rows):
        own = [row for row in rows if row["task"] == task]
        metric = next(iter(own[0]["test"]))
        arms = {
            arm: every
            for arm in order
            if (every := [row for row in own if row["arm"] == arm])
        }
        for arm, every in arms.items():
            found = _by_seeds(every, metric)
            lines.append(
                (
                    task,
                    metric,
                    arm,
                    len(found),
                    with_deviation([row["score"] for row in found], 1),
                    *(less_by_seeds(base, arms, arm, metric) for base in bases),
                    with_deviation([row["seconds"] for row in found], 0),
                    *([known.get((task, arm), "")] if known else []),
                )
            )
        first = {row["seed"]: row for row in reversed(own)}
        for peer, title in (("tfidf", "tf-idf, linear"), ("majority", "majority")):
            scores = [100 * row["peers"][peer][metric] for row in first.values()]
            blank = [""] * (len(bases) + 1 + bool(known))
            shown = with_deviation(scores, 1)
            lines.append((task, metric, title, len(scores), shown, *blank))
    titles = [f"less `{base}`" for base in bases]
    if titles:
        titles[0] += ", ± 2 standard errors"
    titles = ["task", "metric", "arm", "seeds", "test", *titles, "seconds"]
    if known:
        titles.append("the paper")
    return table(titles, lines, (0, 1, 2))


def mean_scores(rows: Sequence[Row]) -> dict[str, float]:
    """Returns 100 times the mean score of each arm on one task, and of tf-idf.

    Of seeds, as in the table: restarts are averaged before.
    """
    metric = next(iter(rows[0]["test"]))
    found = {
        arm: _by_seeds([row for row in rows if row["arm"] == arm], metric)
        for arm in distinct(row["arm"] for row in rows)
    }
    means = {
        arm: float(np.mean([row["score"] for row in own])) for arm, own in found.items()
    }
    first = {row["seed"]: row for row in reversed(rows)}
    peers = [row["peers"]["tfidf"][metric] for row in first.values()]
    return {**means, "tf-idf": 100 * float(np.mean(peers))}


def less_by_seeds(
    base: str, arms: Mapping[str, Sequence[Row]], arm: str, metric: str
) -> str:
    """Returns how far an arm is above another, of a seed in restarts that both have."""
    if arm == base or base not in arms:
        return ""

    def of(name: str) -> set[tuple[int, int]]:
        return {(row["seed"], row.get("restart", 0)) for row in arms[name]}

    both = of(arm) & of(base)
    groups = {
        name: _by_seeds(
            [row for row in arms[name] if (row["seed"], row.get("restart", 0)) in both],
            metric,
        )
        for name in (arm, base)
    }
    return less(base, groups, groups[arm], "score", digits=1)


def _by_seeds(rows: Sequence[Row], metric: str) -> list[Row]:
    """Returns a row a seed, with the mean score of its restarts."""
    found: list[Row] = []
    for seed in sorted({row["seed"] for row in rows}):
        own = [row for row in rows if row["seed"] == seed]
        found.append(
            {
                "seed": seed,
                "score": 100 * float(np.mean([row["test"][metric] for row in own])),
                "seconds": float(np.mean([row["seconds"] for row in own])),
            }
        )
    return found
