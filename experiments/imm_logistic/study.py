"""Trains the logistic regressions of a study and measures them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tqdm

from experiments.imm_logistic.config import LogisticConfig
from experiments.kit.mixtures import mixed_accuracies
from rlm_tf.data import LinearDiscriminant
from rlm_tf.evaluation import cross_validate_logistic
from rlm_tf.models import (
    LogisticWeights,
    fit_logistic_runs,
    logistic_logits,
    published_ratio,
)
from rlm_tf.objectives.binary import induced_binary_cross_entropy
from rlm_tf.objectives.neighbors import neighbor_log_weights
from rlm_tf.restricted import FeatureModel

RATIOS = tuple(round(0.1 * number, 1) for number in range(10))
# Noising is given the best of these at every size, in hindsight.
NOISING_RATIOS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
BANDWIDTHS = (0.1, 0.3, 1.0, 3.0)


class LogisticStudy:
    """A task, its data sets and its test points."""

    def __init__(self, config: LogisticConfig, task: LinearDiscriminant | None = None):
        self.config = config
        self.task = task or config.task
        self.restricted: FeatureModel = self.task.restricted()
        self.test_x, self.test_y = self.task.sample(config.test_points, self.rng(0))
        self.test_probs = self.positive_probs(self.restricted, self.test_x)

    def rng(self, *key: int) -> np.random.Generator:
        """Returns a generator of its own for what `key` numbers."""
        return np.random.default_rng([self.config.seed, *key])

    def data(self, size: int, runs: int, part: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns features `[R, n, D]` and labels `[R, n]` for a part of the study."""
        return self.task.sample(size, self.rng(part, size), runs)

    @staticmethod
    def positive_probs(restricted: FeatureModel, x: np.ndarray) -> np.ndarray:
        """Returns P(y = 1 | x1) `[...]` for features `[..., D]`."""
        probs = restricted.probs(x[..., :1].reshape(-1, 1)).numpy()[:, 1]
        return probs.reshape(x.shape[:-1])

    def fit(
        self,
        x: np.ndarray,
        y: np.ndarray,
        ratios: Any,
        restricted: FeatureModel | None = None,
        **options: Any,
    ) -> LogisticWeights:
        """Fits all runs; options of `fit_logistic_runs` override the configuration."""
        targets = self.positive_probs(restricted or self.restricted, x)
        settings = {
            "inverse_bandwidths": self.config.inverse_bandwidth,
            "learning_rate": self.config.learning_rate,
            "steps": self.config.steps,
        }
        return fit_logistic_runs(x, y, targets, ratios, **(settings | options))

    def accuracies(self, weights: LogisticWeights) -> np.ndarray:
        """Returns each run's share of test points on the right side, `[R]`."""
        logits = logistic_logits(weights, self.test_x).numpy()
        return ((logits > 0) == self.test_y).mean(axis=1)

    def imm_risks(self, weights: LogisticWeights, x: np.ndarray) -> np.ndarray:
        """Returns IMM(Q) of Eq. (3) on the runs' own data, mean per example, `[R]`."""
        seen = x * np.array([1.0, *np.zeros(x.shape[-1] - 1)], x.dtype)
        kernel = tf.nn.softmax(
            neighbor_log_weights(seen, seen, self.config.inverse_bandwidth), axis=0
        )
        from_short = tf.einsum("rnd,rd->rn", seen, weights.kernels)
        rest = tf.transpose(logistic_logits(weights, x) - from_short)
        targets = self.positive_probs(self.restricted, x)
        losses = induced_binary_cross_entropy(
            targets, rest[..., tf.newaxis] + from_short, kernel
        ).loss
        return losses.numpy().mean(axis=1)

    def mixed_accuracies(
        self, x: np.ndarray, y: np.ndarray, weights: LogisticWeights
    ) -> tuple[np.ndarray, np.ndarray]:
        """Interpolates plain models with P_hat; mu by cross-validation.

        Returns:
            Each run's test accuracy and mu, `[R]` each.
        """
        targets = self.positive_probs(self.restricted, x)
        held_out = cross_validate_logistic(
            x,
            y,
            targets,
            ratios=(0.0,),
            folds=self.config.folds,
            seed=self.config.seed,
            learning_rate=self.config.learning_rate,
            steps=self.config.steps,
        ).held_out_log_probs[:, 0, 0]
        logits = logistic_logits(weights, self.test_x).numpy()
        return mixed_accuracies(
            held_out, targets, y, logits, self.test_probs, self.test_y
        )


def figure_1(config: LogisticConfig) -> dict[str, Any]:
    """Returns IMM(Q) and test accuracy by ratio, at one size."""
    study = LogisticStudy(config)
    x, y = study.data(config.figure1_size, config.figure1_runs, 1)
    cells = []
    for ratio in tqdm.tqdm(RATIOS, unit="ratio", disable=None):
        weights = study.fit(x, y, ratio)
        cells.append(
            {
                "ratio": ratio,
                "imm_risk": study.imm_risks(weights, x).tolist(),
                "accuracy": study.accuracies(weights).tolist(),
            }
        )
    targets = study.positive_probs(study.restricted, x).astype(np.float64)
    both = np.clip(np.stack([targets, 1 - targets]), 1e-300, 1)
    entropy = -(both * np.log(both)).sum(axis=0).mean(axis=1)
    return {"cells": cells, "entropy_of_target": entropy.tolist()}


def figure_2(config: LogisticConfig) -> dict[str, Any]:
    """Returns test accuracies by size and arm."""
    study = LogisticStudy(config)
    cells = []
    for size in tqdm.tqdm(config.figure2_sizes, unit="size", disable=None):
        x, y = study.data(size, config.figure2_runs, 2)
        ratio = published_ratio(size)
        plain = study.fit(x, y, 0.0)
        mixed, mus = study.mixed_accuracies(x, y, plain)
        arms = {
            "none": study.accuracies(plain),
            "imm": study.accuracies(study.fit(x, y, ratio)),
            "interpolation": mixed,
        }
        for value in NOISING_RATIOS:
            weights = study.fit(x, y, value, objective="noising")
            arms[f"noising {value}"] = study.accuracies(weights)
        cells.append(
            {
                "size": size,
                "ratio": ratio,
                "mu": float(mus.mean()),
                "accuracies": {name: values.tolist() for name, values in arms.items()},
            }
        )
    return {"cells": cells}


def figure_4(config: LogisticConfig) -> dict[str, Any]:
    """Returns test accuracies by learning rate, size and ratio."""
    return _sweeps(config, config.figure4_sizes, config.figure4_runs, 4)


def rule(config: LogisticConfig) -> dict[str, Any]:
    """Returns the same of fewer sizes and more data sets, to fit the rule."""
    return _sweeps(config, config.rule_sizes, config.rule_runs, 5)


def _sweeps(
    config: LogisticConfig, sizes: Sequence[int], runs: int, part: int
) -> dict[str, Any]:
    study = LogisticStudy(config)
    cells = []
    for rate in config.figure4_rates:
        cells += _sweep(study, sizes, runs, part, rate)
    return {"cells": cells}


def _sweep(
    study: LogisticStudy, sizes: Sequence[int], runs: int, part: int, rate: float
) -> list[dict[str, Any]]:
    cells = []
    for size in tqdm.tqdm(sizes, desc=f"rate {rate}", unit="size", disable=None):
        x, y = study.data(size, runs, part)
        for ratio in RATIOS:
            weights = study.fit(x, y, ratio, learning_rate=rate)
            cells.append(
                {
                    "learning_rate": rate,
                    "size": size,
                    "ratio": ratio,
                    "accuracy": study.accuracies(weights).tolist(),
                }
            )
    return cells


def tuning(config: LogisticConfig) -> dict[str, Any]:
    """Returns what cross-validation chooses, and what its choices are worth."""
    study = LogisticStudy(config)
    cells = []
    for size in tqdm.tqdm(config.tuning_sizes, unit="size", disable=None):
        x, y = study.data(size, config.tuning_runs, 6)
        found = cross_validate_logistic(
            x,
            y,
            study.positive_probs(study.restricted, x),
            ratios=RATIOS,
            inverse_bandwidths=BANDWIDTHS,
            folds=config.folds,
            seed=config.seed,
            learning_rate=config.learning_rate,
            steps=config.tuning_steps,
        )
        mean_losses = found.losses.mean(axis=0)
        place = np.unravel_index(mean_losses.argmin(), mean_losses.shape)
        pooled = BANDWIDTHS[place[0]], RATIOS[place[1]]
        settings = {
            "none": (1.0, 0.0),
            "imm, published rule": (1.0, published_ratio(size)),
            "imm, cross-validated": (found.inverse_bandwidths, found.ratios),
            "imm, cross-validated over all data sets": pooled,
        }
        cells.append(
            {
                "size": size,
                "held_out_loss": mean_losses.tolist(),
                "pooled": {"inverse_bandwidth": pooled[0], "ratio": pooled[1]},
                "ratios": found.ratios.tolist(),
                "inverse_bandwidths": found.inverse_bandwidths.tolist(),
                "accuracies": {
                    name: study.accuracies(
                        study.fit(
                            x,
                            y,
                            ratio,
                            inverse_bandwidths=alpha,
                            steps=config.tuning_steps,
                        )
                    ).tolist()
                    for name, (alpha, ratio) in settings.items()
                },
            }
        )
    return {"cells": cells}
