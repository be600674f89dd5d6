"""Question 5: IMM together with weight decay, on the logistic task."""

from __future__ import annotations

from typing import Any

import tqdm

from experiments.imm_questions.config import QuestionsConfig
from experiments.imm_questions.logistic_task import Task, summary
from rlm_tf.models import published_ratio

_DECAYS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1)


def compute(config: QuestionsConfig) -> dict[str, Any]:
    """Returns accuracies by weight decay, with and without IMM."""
    task = Task(config)
    cells = []
    for size in tqdm.tqdm(config.sizes, unit="size", disable=None):
        x, y = task.data(size)
        targets = task.targets(x)
        for decay in _DECAYS:
            plain, helped = (
                task.accuracies(task.fit(x, y, targets, ratio, weight_decays=decay))
                for ratio in (0.0, published_ratio(size))
            )
            cells.append(
                {
                    "size": size,
                    "decay": decay,
                    "plain": summary(plain),
                    "imm": summary(helped, plain),
                }
            )
    return {"cells": cells}
