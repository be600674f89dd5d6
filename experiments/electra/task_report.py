"""Tables of the study's encoders that were fine-tuned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.electra.chosen_rows import ORDER, Row
from experiments.kit.drawing import distinct, table, with_deviation
from experiments.kit.encoder_tasks import glue_scores
from experiments.kit.task_list import GLUE
from experiments.kit.task_tables import task_table
from rlm_tf.command_line.wording import number_of
from rlm_tf.evaluation import glue_average


def of_tasks(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables of what there is, by name."""
    named = [{**row, "arm": _named(row)} for row in rows]
    found = {"tasks": by_tasks(named)}
    averages = glue(named)
    return {**found, "glue": averages} if averages else found


def _named(row: Row) -> str:
    tuned = ", settings of Table A.2" if "tried" in row else ""
    return f"{row['arm']}, {number_of('layer', row['generator'])}{tuned}"


def by_tasks(rows: Sequence[Row]) -> str:
    """Returns scores of fine-tuned encoders, beside those of `original`.

    Args:
        rows: Their arms say layers of the generator, too.
    """
    arms = distinct(row["arm"] for row in rows)
    return task_table(
        rows,
        order=sorted(arms, key=_place),
        bases=[arm for arm in sorted(arms) if arm.startswith("original")],
    )


def _place(arm: str) -> tuple[int, str]:
    return ORDER.index(arm.partition(",")[0]), arm


def glue(rows: Sequence[Row]) -> str | None:
    """Returns averages over GLUE's eight tasks, of arms that have them all, or None.

    Args:
        rows: As for `by_tasks`.
    """
    lines = []
    for arm in sorted(distinct(row["arm"] for row in rows), key=_place):
        own = [row for row in rows if row["arm"] == arm]
        averages = {
            "encoder": _averages(own, lambda row: row["test"]),
            "tf-idf, linear": _averages(own, lambda row: row["peers"]["tfidf"]),
        }
        for name, found in averages.items():
            if found:
                shown = arm if name == "encoder" else f"{name}, for {arm}"
                lines.append((shown, len(found), with_deviation(found, 1)))
    titles = ("arm", "seeds", "average of GLUE's eight tasks")
    return table(titles, lines) if lines else None


def _averages(rows: Sequence[Row], scores_of: Any) -> list[float]:
    """Returns 100 times the average of each seed that has all tasks."""
    found = []
    for seed in sorted({row["seed"] for row in rows}):
        of_seed: dict[str, Mapping[str, float]] = {
            row["task"]: scores_of(row) for row in rows if row["seed"] == seed
        }
        if set(GLUE) <= set(of_seed):
            found.append(100 * glue_average(glue_scores(of_seed)))
    return found
