"""Question 2: other restrictions than one short context, on the logistic task."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tqdm

from experiments.imm_questions.config import QuestionsConfig
from experiments.imm_questions.logistic_task import Task, summary
from rlm_tf.batched_runs.logistic_runs import (
    Restriction,
    fit_restricted_runs,
    neighbor_kernel,
)
from rlm_tf.models import published_ratio

_CENTRES = 8


def compute(config: QuestionsConfig) -> dict[str, Any]:
    """Returns accuracies of several, hierarchical and non-linear restrictions.

    The published ratio is shared out equally where there are several restricted models.
    """
    task = Task(config)
    centres = task.rng(2).uniform(-1, 1, (_CENTRES, 3))
    cells = []
    for size in tqdm.tqdm(config.sizes, unit="size", disable=None):
        x, y = task.data(size)
        one = {index: _features(task, x, (index,)) for index in range(3)}
        pair = _features(task, x, (0, 1))
        arms = {
            "none": [],
            "{x1}": [one[0]],
            "{x1}, {x2}": [one[0], one[1]],
            "{x1}, {x2}, {x3}": [one[0], one[1], one[2]],
            "{x1, x2}": [pair],
            "{x1}, {x1, x2} (hierarchical)": [one[0], pair],
            "nearest of 8 centres (clusters)": [_clusters(task, x, centres)],
            "absolute value of x1 + x2 (not linear)": [_magnitude(task, x)],
        }
        ratio = published_ratio(size)
        plain = None
        for name, parts in arms.items():
            share = np.full(len(x), ratio / max(len(parts), 1), np.float32)
            weights = fit_restricted_runs(
                x,
                y,
                [part._replace(ratios=tf.constant(share)) for part in parts],
                steps=config.steps,
            )
            accuracies = task.accuracies(weights)
            plain = accuracies if plain is None else plain
            cells.append({"size": size, "arm": name, **summary(accuracies, plain)})
    return {"cells": cells}


def _features(task: Task, x: np.ndarray, short: tuple[int, ...]) -> Restriction:
    """Returns the exact model of some features."""
    substituted = np.isin(np.arange(x.shape[2]), short).astype(np.float32)
    kernel = neighbor_kernel(x * substituted, 1.0)
    return Restriction(
        tf.constant(task.targets(x, short)),
        tf.zeros(len(x)),
        kernel,
        tf.constant(substituted),
    )


def _by_value(task: Task, x: np.ndarray, seen: Any, bins: int) -> np.ndarray:
    """Returns P(y = 1 | value) of points, counted on ample others."""
    sample, labels = task.source.sample(400_000, task.rng(3))
    values = seen(sample)
    edges = np.quantile(values, np.linspace(0, 1, bins + 1)[1:-1])
    places = np.searchsorted(edges, values)
    ones = np.bincount(places, labels, minlength=bins)
    shares = ones / np.maximum(np.bincount(places, minlength=bins), 1)
    return shares[np.searchsorted(edges, seen(x))]


def _magnitude(task: Task, x: np.ndarray) -> Restriction:
    """Returns a model that sees |x1 + x2|: examples nearby stand for each other."""

    def seen(points: np.ndarray) -> np.ndarray:
        return np.abs(points[..., 0] + points[..., 1])

    kernel = neighbor_kernel(seen(x)[..., np.newaxis].astype(np.float32), 3.0)
    targets = _by_value(task, x, seen, 50)
    return Restriction(
        tf.constant(targets), tf.zeros(len(x)), kernel, tf.zeros(x.shape[2])
    )


def _clusters(task: Task, x: np.ndarray, centres: np.ndarray) -> Restriction:
    """Returns a model that sees the nearest centre: members stand for each other."""

    def seen(points: np.ndarray) -> np.ndarray:
        distances = ((points[..., np.newaxis, :] - centres) ** 2).sum(axis=-1)
        return distances.argmin(axis=-1)

    sample, labels = task.source.sample(400_000, task.rng(3))
    of_sample = seen(sample)
    ones = np.bincount(of_sample, labels, minlength=len(centres))
    shares = ones / np.maximum(np.bincount(of_sample, minlength=len(centres)), 1)
    found = seen(x)
    same = found[:, :, np.newaxis] == found[:, np.newaxis]
    kernel = (same / same.sum(axis=1, keepdims=True)).transpose(1, 0, 2)
    return Restriction(
        tf.constant(shares[found]),
        tf.zeros(len(x)),
        tf.constant(kernel.astype(np.float32)),
        tf.zeros(x.shape[2]),
    )
