"""Other choices of the task: does IMM help there as well?"""

from __future__ import annotations

from typing import Any, NamedTuple

import tqdm

from experiments.imm_logistic.config import LogisticConfig
from experiments.imm_logistic.study import LogisticStudy
from rlm_tf.data import LinearDiscriminant
from rlm_tf.models import published_ratio
from rlm_tf.restricted import BinnedModel


class Choice(NamedTuple):
    """A task, and what its scale asks of kernel and gradient descent."""

    task: LinearDiscriminant
    inverse_bandwidth: float = 1.0
    learning_rate: float = 1.0


_WIDE = LinearDiscriminant(low=-3.0, high=3.0)
CHOICES = {
    "x1 + x2 + x3 on [-1, 1]": Choice(LinearDiscriminant()),
    "2 x1 + x2 + x3": Choice(LinearDiscriminant((2.0, 1.0, 1.0))),
    "x1 + 2 x2 + 2 x3": Choice(LinearDiscriminant((1.0, 2.0, 2.0))),
    "x1 - 0.5 x2 + 0.25 x3": Choice(LinearDiscriminant((1.0, -0.5, 0.25))),
    "x1 + x2 + x3 + 0.5": Choice(LinearDiscriminant(offset=0.5)),
    "x1 + x2 + x3 - 1.5 on [0, 1]": Choice(LinearDiscriminant(offset=-1.5, low=0.0)),
    "x1 + x2 + x3 on [-3, 3]": Choice(_WIDE),
    "the same, alpha 1/3": Choice(_WIDE, 1 / 3),
    "the same, alpha 1/3, rate 1/9": Choice(_WIDE, 1 / 3, 1 / 9),
}


def choices(config: LogisticConfig) -> dict[str, Any]:
    """Returns accuracies with and without IMM for other choices of the task."""
    cells = []
    each = tqdm.tqdm(CHOICES.items(), unit="task", disable=None)
    for number, (name, choice) in enumerate(each):
        task, alpha, rate = choice
        study = LogisticStudy(config, task)
        pairs, labels = task.sample(config.fitted_pairs, study.rng(8, number))
        fitted = BinnedModel(config.fitted_bins, 2, task.low, task.high)
        fitted.fit(pairs[:, 0], labels)
        options: dict[str, Any] = {"inverse_bandwidths": alpha, "learning_rate": rate}
        for size in config.rule_sizes:
            x, y = study.data(size, config.choices_runs, 7)
            ratio = published_ratio(size)
            arms = {
                "none": study.fit(x, y, 0.0, **options),
                "imm": study.fit(x, y, ratio, **options),
                "imm, fitted P_hat": study.fit(x, y, ratio, fitted, **options),
            }
            cells.append(
                {
                    "task": name,
                    "definition": {**task._asdict(), **options},
                    "size": size,
                    "accuracies": {
                        arm: study.accuracies(weights).tolist()
                        for arm, weights in arms.items()
                    },
                }
            )
    return {"cells": cells}
