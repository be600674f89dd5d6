"""Reads the tasks of `task_list`, and scores what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.stats
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from experiments.kit.task_list import GLUE, TASKS
from rlm_tf.commands.encoders.examples import (
    Examples,
    Score,
    constant_peer,
    linear_peer,
)
from rlm_tf.data import LabelledTexts, load_ag_news, load_corpus, load_glue

# Share of the training examples that epochs and rates are chosen on.
HELD_OUT = 0.1


def _spearman(labels: np.ndarray, said: np.ndarray) -> float:
    """Returns Spearman's correlation, 0 where all that is said is the same."""
    if np.ptp(said) == 0:
        return 0.0
    return float(scipy.stats.spearmanr(labels, said).statistic)


METRICS: Mapping[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "accuracy": accuracy_score,
    "f1": f1_score,
    "matthews": matthews_corrcoef,
    "spearman": _spearman,
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
    kept, held = train.split(HELD_OUT, seed)
    return Examples(kept, held, test, [])


def _halves() -> LabelledTexts:
    """Returns lines of the embedded corpus, labelled by where in it they are."""
    corpus = load_corpus("python-docs")
    lines = corpus.vocabulary.decode(corpus.train).split("\n")
    lines = [line.strip() for line in lines if line.strip()]
    labels = np.arange(len(lines)) * 2 // len(lines)
    return LabelledTexts(lines, labels.astype(np.int32), ("first", "second"))


def other_tests(name: str) -> dict[str, LabelledTexts]:
    """Returns further test texts of a task, by what their metrics end in."""
    task = TASKS[name]
    return {end: load_glue(task.source, split) for end, split in task.others.items()}


def glue_scores(found: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Returns scores as `rlm_tf.evaluation.glue_average` wants them.

    Args:
        found: Of every task of `task_list.GLUE`, scores by metric.
    """
    scores = {task: found[task][metric] for task, metric in GLUE.items()}
    matched = scores.pop("mnli")
    mismatched = found["mnli"]["accuracy_mismatched"]
    return {"mnli_matched": matched, "mnli_mismatched": mismatched, **scores}


def scores(
    name: str, test: LabelledTexts, said: np.ndarray, ending: str = ""
) -> dict[str, float]:
    """Returns the metrics of a task, of predicted classes int `[N]`, or numbers.

    Args:
        name: Of `task_list.TASKS`.
        test: What was predicted.
        said: The predictions.
        ending: Of the names of metrics.
    """
    return {
        metric + ending: float(METRICS[metric](test.labels, said))
        for metric in TASKS[name].metrics
    }


def chosen_by(name: str) -> Score:
    """Returns the metric of a task that counts, of texts and what is said of them."""
    metric = METRICS[TASKS[name].metrics[0]]
    return lambda texts, said: float(metric(texts.labels, said))


def peers(name: str, examples: Examples) -> dict[str, Any]:
    """Returns what tf-idf with a linear model scores, and the most frequent class.

    The linear model is the best on held-out examples by the metric that counts.
    """
    found: dict[str, Any] = {"tfidf": {}, "tfidf_about": "", "majority": {}}
    for ending, test in {"": examples.test, **other_tests(name)}.items():
        asked = examples._replace(test=test)
        linear = linear_peer(asked, chosen_by(name))
        found["tfidf"] |= scores(name, test, linear.predictions, ending)
        found["tfidf_about"] = linear.about
        found["majority"] |= scores(name, test, constant_peer(asked), ending)
    return found
