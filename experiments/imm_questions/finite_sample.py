"""Question 1: what IMM gains, as a function of examples per parameter."""

from __future__ import annotations

from typing import Any

import tqdm

from experiments.imm_questions.config import QuestionsConfig
from experiments.imm_questions.logistic_task import Task, summary

# Every cell's ratio is chosen on one half of its data sets and judged on the other.
_RATIOS = (0.2, 0.4, 0.6, 0.8)


def compute(config: QuestionsConfig) -> dict[str, Any]:
    """Returns accuracy without IMM and gains with it by features and examples."""
    cells = []
    pairs = [(d, m) for d in config.features for m in config.multiples]
    for features, multiple in tqdm.tqdm(pairs, unit="cell", disable=None):
        task = Task(config, features)
        short = tuple(range(max(features // 3, 1)))
        size = max(round(multiple * (features + 1)), 2)
        x, y = task.data(size)
        targets = task.targets(x, short)
        plain = task.accuracies(task.fit(x, y, targets, 0.0))
        helped = {
            ratio: task.accuracies(task.fit(x, y, targets, ratio, short_features=short))
            for ratio in _RATIOS
        }
        half = len(x) // 2
        means = {ratio: values[:half].mean() for ratio, values in helped.items()}
        best = max(means, key=lambda ratio: means[ratio])
        cells.append(
            {
                "features": features,
                "size": size,
                "per_parameter": size / (features + 1),
                "plain": summary(plain[half:]),
                "ratio": best,
                "imm": summary(helped[best][half:], plain[half:]),
            }
        )
    return {"cells": cells}
