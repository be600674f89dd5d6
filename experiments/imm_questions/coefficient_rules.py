"""Question 3: rules for lambda that need no cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tqdm

from experiments.imm_questions.config import QuestionsConfig
from experiments.imm_questions.logistic_task import Task, summary
from rlm_tf.evaluation import cross_validate_logistic
from rlm_tf.models import LogisticWeights, logistic_logits, published_ratio
from rlm_tf.objectives.binary import induced_binary_cross_entropy
from rlm_tf.objectives.neighbors import neighbor_log_weights

_RATIOS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)
_HELD_OUT = 200
_STAGES = 10
_LARGEST = 0.9


def compute(config: QuestionsConfig) -> dict[str, Any]:
    """Returns accuracies by rule.

    `evidence`: r = 1 - exp(-n A), where A is the restricted model's advantage over the
    current induced model: the mean difference of their log-likelihoods, nats, on 200
    held-out pairs (x1, y) of each data set, which no other rule gets, but which are
    cheap wherever a restricted model is. n A is the
    evidence that n examples would give against the induced model; it vanishes as that
    comes to match. `once` takes A of the model trained without IMM; `ten times` takes
    it anew at each tenth of the training.
    """
    task = Task(config)
    held_out = task.source.sample(_HELD_OUT, task.rng(4), config.runs)
    cells = []
    for size in tqdm.tqdm(config.sizes, unit="size", disable=None):
        x, y = task.data(size)
        targets = task.targets(x)
        plain_weights = task.fit(x, y, targets, 0.0)
        plain = task.accuracies(plain_weights)
        fixed = {
            ratio: task.accuracies(task.fit(x, y, targets, ratio))
            for ratio in _RATIOS[1:]
        }
        best = max(fixed, key=lambda ratio: float(fixed[ratio].mean()))
        advantage = _advantages(task, plain_weights, x, held_out)
        once = np.clip(1 - np.exp(-size * advantage), 0.0, _LARGEST)
        found = cross_validate_logistic(
            x, y, targets, ratios=_RATIOS, steps=config.steps
        )
        stages, ratios = _in_stages(task, x, y, targets, held_out)
        arms: dict[str, tuple[np.ndarray, Any]] = {
            "none": (plain, 0.0),
            "published rule": (
                task.accuracies(task.fit(x, y, targets, published_ratio(size))),
                published_ratio(size),
            ),
            "best fixed, in hindsight": (fixed[best], best),
            "cross-validated": (
                task.accuracies(task.fit(x, y, targets, found.ratios)),
                found.ratios.mean(),
            ),
            "evidence, once": (
                task.accuracies(task.fit(x, y, targets, once.astype(np.float32))),
                once.mean(),
            ),
            "evidence, ten times": (task.accuracies(stages), ratios.mean()),
        }
        for name, (values, ratio) in arms.items():
            cells.append(
                {
                    "size": size,
                    "arm": name,
                    "ratio": float(ratio),
                    **summary(values, plain),
                }
            )
    return {"cells": cells}


def _advantages(
    task: Task,
    weights: LogisticWeights,
    x: np.ndarray,
    held_out: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """Returns each run's mean log P_hat - log Q_hat on its held-out pairs, `[R]`."""
    points, labels = held_out
    short = np.array([1, 0, 0], np.float32)
    wanted = points * short
    kernel = tf.nn.softmax(neighbor_log_weights(wanted, x * short, 1.0), axis=0)
    own = tf.einsum("rnd,rd->rn", wanted, weights.kernels)
    rest = logistic_logits(weights, x * (1 - short))
    logits = tf.transpose(rest)[..., tf.newaxis] + own
    losses = induced_binary_cross_entropy(
        labels.astype(np.float32), logits, kernel
    ).loss.numpy()
    targets = task.targets(points)
    own_losses = -np.log(np.where(labels == 1, targets, 1 - targets))
    return losses.mean(axis=1) - own_losses.mean(axis=1)


def _in_stages(
    task: Task,
    x: np.ndarray,
    y: np.ndarray,
    targets: np.ndarray,
    held_out: tuple[np.ndarray, np.ndarray],
) -> tuple[LogisticWeights, np.ndarray]:
    """Returns weights after training whose ratio is set anew at each stage."""
    zeros = np.zeros(len(x), np.float32)
    weights = LogisticWeights(tf.zeros_like(x[:, 0]), tf.constant(zeros))
    ratios = zeros
    for _ in range(_STAGES):
        advantage = _advantages(task, weights, x, held_out)
        ratios = np.clip(1 - np.exp(-x.shape[1] * advantage), 0.0, _LARGEST)
        weights = task.fit(
            x,
            y,
            targets,
            ratios.astype(np.float32),
            initial=weights,
            steps=max(task.config.steps // _STAGES, 1),
        )
    return weights, ratios
