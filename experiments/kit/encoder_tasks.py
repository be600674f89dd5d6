"""Labelled texts that studies fine-tune encoders on, and what is measured on each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from rlm_tf.commands.encoders.examples import Examples, constant_peer, linear_peer
from rlm_tf.data import LabelledTexts, load_ag_news, load_glue

# Share of the training examples that epochs and rates are chosen on.
_HELD_OUT = 0.1
Metric = Callable[[np.ndarray, np.ndarray], float]


class Task(NamedTuple):
    """Where examples come from, and what counts.

    Attributes:
        source: "ag_news", or a task of GLUE, whose published dev text is the test.
        metrics: By name, the first one counts.
        train: Training examples; a share of all, or how many; None: all.
        length: Most pieces of a row.
    """

    source: str
    metrics: Mapping[str, Metric]
    train: float | int | None = None
    length: int = 64


def _f1(true: np.ndarray, said: np.ndarray) -> float:
    return float(f1_score(true, said))


def _accuracy(true: np.ndarray, said: np.ndarray) -> float:
    return float(accuracy_score(true, said))


def _matthews(true: np.ndarray, said: np.ndarray) -> float:
    return float(matthews_corrcoef(true, said))


TASKS: Mapping[str, Task] = {
    "sst2-tenth": Task("sst2", {"accuracy": _accuracy}, 0.1),
    "ag-news-1000": Task("ag_news", {"accuracy": _accuracy}, 1000),
    "ag-news-300": Task("ag_news", {"accuracy": _accuracy}, 300),
    "cola": Task("cola", {"matthews": _matthews, "accuracy": _accuracy}),
    "rte": Task("rte", {"accuracy": _accuracy}, length=128),
    "mrpc": Task("mrpc", {"f1": _f1, "accuracy": _accuracy}, length=128),
}


def read_task(name: str, seed: int) -> Examples:
    """Returns the examples of a task, a tenth of the training ones held out.

    Args:
        name: Of `TASKS`.
        seed: Of which are trained on, and which held out.
    """
    task = TASKS[name]
    if task.source == "ag_news":
        train, test = load_ag_news("train_sample_5000.csv"), load_ag_news("test.csv")
    else:
        train, test = load_glue(task.source), load_glue(task.source, "dev")
    if task.train is not None:
        is_share = isinstance(task.train, float)
        number = round(task.train * len(train)) if is_share else int(task.train)
        train = train.sample(number, seed)
    kept, held = train.split(_HELD_OUT, seed)
    return Examples(kept, held, test, [])


def scores(name: str, test: LabelledTexts, said: np.ndarray) -> dict[str, float]:
    """Returns the metrics of a task, of predicted classes int `[N]`."""
    found = TASKS[name].metrics
    return {metric: score(test.labels, said) for metric, score in found.items()}


def peers(name: str, examples: Examples) -> dict[str, Any]:
    """Returns what tf-idf with a linear model scores, and the most frequent class."""
    linear = linear_peer(examples)
    return {
        "tfidf": scores(name, examples.test, linear.predictions),
        "tfidf_about": linear.about,
        "majority": scores(name, examples.test, constant_peer(examples)),
    }
