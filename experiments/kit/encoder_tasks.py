"""Reads the tasks of `task_list`, and scores what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from experiments.kit.task_list import TASKS
from rlm_tf.commands.encoders.examples import Examples, constant_peer, linear_peer
from rlm_tf.data import LabelledTexts, load_ag_news, load_corpus, load_glue

# Share of the training examples that epochs and rates are chosen on.
_HELD_OUT = 0.1
METRICS: Mapping[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "accuracy": accuracy_score,
    "f1": f1_score,
    "matthews": matthews_corrcoef,
}


def read_task(name: str, seed: int) -> Examples:
    """Returns the examples of a task, a tenth of the training ones held out.

    Args:
        name: Of `task_list.TASKS`.
        seed: Of which are trained on, and which held out.
    """
    task = TASKS[name]
    if task.source == "ag_news":
        train, test = load_ag_news("train_sample_5000.csv"), load_ag_news("test.csv")
    elif task.source == "python-docs":
        train, test = _halves().sample(2000, seed).split(0.2, seed)
    else:
        train, test = load_glue(task.source), load_glue(task.source, "dev")
    if task.train is not None:
        is_share = isinstance(task.train, float)
        number = round(task.train * len(train)) if is_share else int(task.train)
        train = train.sample(number, seed)
    kept, held = train.split(_HELD_OUT, seed)
    return Examples(kept, held, test, [])


def _halves() -> LabelledTexts:
    """Returns lines of the embedded corpus, labelled by where in it they are."""
    corpus = load_corpus("python-docs")
    lines = corpus.vocabulary.decode(corpus.train).split("\n")
    lines = [line.strip() for line in lines if line.strip()]
    labels = np.arange(len(lines)) * 2 // len(lines)
    return LabelledTexts(lines, labels.astype(np.int32), ("first", "second"))


def scores(name: str, test: LabelledTexts, said: np.ndarray) -> dict[str, float]:
    """Returns the metrics of a task, of predicted classes int `[N]`."""
    return {
        metric: float(METRICS[metric](test.labels, said))
        for metric in TASKS[name].metrics
    }


def peers(name: str, examples: Examples) -> dict[str, Any]:
    """Returns what tf-idf with a linear model scores, and the most frequent class."""
    linear = linear_peer(examples)
    return {
        "tfidf": scores(name, examples.test, linear.predictions),
        "tfidf_about": linear.about,
        "majority": scores(name, examples.test, constant_peer(examples)),
    }
