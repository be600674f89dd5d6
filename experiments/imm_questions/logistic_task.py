"""The logistic task of the questions: data, restricted models, accuracies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.imm_questions.config import QuestionsConfig
from experiments.kit.mixtures import mixed_accuracies
from rlm_tf.data import LinearDiscriminant
from rlm_tf.evaluation import cross_validate_logistic
from rlm_tf.models import LogisticWeights, fit_logistic_runs, logistic_logits


class Task:
    """`y = 1{x_1 + ... + x_D > 0}` on [-1, 1]^D, and what measures models of it."""

    def __init__(self, config: QuestionsConfig, num_features: int = 3):
        self.config = config
        self.source = LinearDiscriminant((1.0,) * num_features)
        self.test_x, self.test_y = self.source.sample(config.test_points, self.rng(0))

    def rng(self, *key: int) -> np.random.Generator:
        """Returns a generator of its own for what `key` numbers."""
        return np.random.default_rng(
            [self.config.seed, len(self.source.coefficients), *key]
        )

    def data(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns features `[R, n, D]` and labels `[R, n]`."""
        return self.source.sample(size, self.rng(1, size), self.config.runs)

    def targets(self, x: np.ndarray, short_features: Sequence[int] = (0,)):
        """Returns the exact P(y = 1 | short features) of points: `[...]`."""
        short = x[..., list(short_features)].reshape(-1, len(short_features))
        restricted = self.source.restricted(short_features)
        return restricted.positive_probs(short).numpy().reshape(x.shape[:-1])

    def fit(self, x: Any, y: Any, targets: Any, ratios: Any, **options: Any):
        """Returns the weights of `fit_logistic_runs` after the configured steps."""
        options = {"steps": self.config.steps, **options}
        return fit_logistic_runs(x, y, targets, ratios, **options)

    def accuracies(self, weights: LogisticWeights) -> np.ndarray:
        """Returns each run's share of test points on the right side, `[R]`."""
        logits = logistic_logits(weights, self.test_x).numpy()
        return ((logits > 0) == self.test_y).mean(axis=1)

    def interpolation(
        self, x: np.ndarray, y: np.ndarray, targets: np.ndarray, test_targets: Any
    ) -> np.ndarray:
        """Returns each run's accuracy of (1 - mu) Q + mu P_hat, mu cross-validated."""
        held_out = cross_validate_logistic(
            x, y, targets, ratios=(0.0,), steps=self.config.steps
        ).held_out_log_probs[:, 0, 0]
        logits = logistic_logits(self.fit(x, y, targets, 0.0), self.test_x).numpy()
        return mixed_accuracies(
            held_out, targets, y, logits, test_targets, self.test_y
        )[0]


def summary(values: Any, baseline: Any = None) -> dict[str, float]:
    """Returns mean and standard error, and those of the gain over a baseline."""
    values = np.asarray(values, np.float64)
    count = np.sqrt(len(values))
    spread = values.std(ddof=1) if len(values) > 1 else 0.0
    result = {"mean": float(values.mean()), "error": float(spread / count)}
    if baseline is not None:
        gain = values - np.asarray(baseline)
        spread = gain.std(ddof=1) if len(values) > 1 else 0.0
        result |= {"gain": float(gain.mean()), "gain_error": float(spread / count)}
    return result
