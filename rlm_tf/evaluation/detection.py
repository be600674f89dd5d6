"""Scores of detectors of replaced tokens, and GLUE's average."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_THRESHOLD = 0.5
_TASKS = (
    ("mnli_matched", "mnli_mismatched"),
    ("qqp",),
    ("qnli",),
    ("sst2",),
    ("cola",),
    ("rte",),
    ("mrpc",),
    ("stsb",),
)


class DetectionScores(NamedTuple):
    """How well replaced tokens are found; 0 where a ratio is 0 / 0.

    Attributes:
        accuracy: Share of the tokens that are judged right.
        precision: Share of those said to be replaced that are.
        recall: Share of those replaced that are said to be.
        f1: Harmonic mean of the two.
    """

    accuracy: float
    precision: float
    recall: float
    f1: float


def detection_scores(
    probs: npt.ArrayLike, labels: npt.ArrayLike, padding: npt.ArrayLike | None = None
) -> DetectionScores:
    """Scores a detector; a token is said to be replaced from probability 0.5 on.

    Args:
        probs: Probability of having been replaced, any shape.
        labels: 1 or True where replaced, that shape.
        padding: 1 or True where there is no token, that shape; None: nowhere.

    Raises:
        ValueError: If shapes differ.
    """
    said = np.asarray(probs) >= _THRESHOLD
    true = np.asarray(labels, bool)
    absent = np.zeros_like(true) if padding is None else np.asarray(padding, bool)
    if not said.shape == true.shape == absent.shape:
        raise ValueError(
            "detection_scores: `probs`, `labels` and `padding` must have one shape, "
            f"found {said.shape}, {true.shape} and {absent.shape}."
        )
    said, true = said[~absent], true[~absent]
    hits, claims, replaced = (int(each.sum()) for each in (said & true, said, true))
    return DetectionScores(
        _ratio(int((said == true).sum()), true.size),
        _ratio(hits, claims),
        _ratio(hits, replaced),
        _ratio(2 * hits, claims + replaced),
    )


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def glue_average(scores: Mapping[str, float]) -> float:
    """Returns the mean of GLUE's eight tasks, MNLI that of its two halves.

    Args:
        scores: By `mnli_matched`, `mnli_mismatched`, `qqp`, `qnli`, `sst2`, `cola`,
            `rte`, `mrpc`, `stsb`.

    Raises:
        ValueError: If a task is missing or unknown.
    """
    known = [name for task in _TASKS for name in task]
    missing = [name for name in known if name not in scores]
    unknown = [name for name in scores if name not in known]
    if missing or unknown:
        raise ValueError(
            f"glue_average: `scores` must be of {', '.join(known)}; missing: "
            f"{', '.join(missing) or 'none'}, unknown: {', '.join(unknown) or 'none'}."
        )
    return float(np.mean([np.mean([scores[n] for n in task]) for task in _TASKS]))
