"""Question 4: restricted models that are wrong, on the logistic task and the grid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tqdm

from experiments.imm_questions.config import QuestionsConfig
from experiments.imm_questions.logistic_task import Task, summary
from experiments.kit.grid_config import ReinforceConfig
from experiments.kit.grid_study import Arm, GridStudy
from rlm_tf.models import (
    coefficient_from_ratio,
    published_ratio,
    published_reinforce_ratio,
)
from rlm_tf.restricted import BinnedModel

_NOISING_RATIOS = (0.02, 0.05, 0.1, 0.2, 0.4)
_TEMPERATURES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_LABEL_NOISE = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
_PAIRS = (5, 10, 20, 50, 100, 1000)
_MIXTURES = (0.05, 0.1, 0.2, 0.4, 0.8)
_GRID_NOISE = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def compute(config: QuestionsConfig) -> dict[str, Any]:
    """Returns accuracies by how P_hat is degraded, for IMM, noising, interpolation.

    Temperature: P_hat^(1/T), normalised; T < 1 is too sure, T > 1 too unsure. Label
    noise: P_hat of labels that are flipped with a probability. Few pairs: P_hat counted
    in bins from so many pairs (x1, y), drawn anew for every run.
    """
    task = Task(config)
    cells = []
    size = config.sizes[min(1, len(config.sizes) - 1)]
    x, y = task.data(size)
    exact, test_exact = task.targets(x), task.targets(task.test_x)
    plain = task.accuracies(task.fit(x, y, exact, 0.0))
    degraded: list[tuple[str, float, Callable[[np.ndarray], np.ndarray] | None]] = [
        *[("temperature", t, _tempered(t)) for t in _TEMPERATURES],
        *[("label noise", e, _flipped(e)) for e in _LABEL_NOISE],
        *[("pairs", float(m), None) for m in _PAIRS],
    ]
    for kind, amount, change in tqdm.tqdm(degraded, unit="P_hat", disable=None):
        if change is None:
            targets, test = _counted(task, x, int(amount))
        else:
            targets, test = change(exact), change(test_exact)
        noising = [
            task.accuracies(task.fit(x, y, targets, ratio, objective="noising"))
            for ratio in _NOISING_RATIOS
        ]
        arms = {
            "imm": task.accuracies(task.fit(x, y, targets, published_ratio(size))),
            "imm, ratio 0.2": task.accuracies(task.fit(x, y, targets, 0.2)),
            "noising, best ratio": max(noising, key=lambda each: float(each.mean())),
            "interpolation": task.interpolation(x, y, targets, test),
        }
        for name, values in arms.items():
            cells.append(
                {
                    "kind": kind,
                    "amount": amount,
                    "arm": name,
                    **summary(values, plain),
                }
            )
    return {"cells": cells, "size": size, "plain": summary(plain), "grid": grid(config)}


def grid(config: QuestionsConfig) -> list[dict[str, Any]]:
    """Returns returns on the grid when the target is mixed with another policy.

    With the uniform policy, and with the opposite one, which walks away from the
    column of the reward. Noising and interpolation have the best of some ratios in
    hindsight, each for every target.
    """
    epochs = config.grid_epochs
    lengths = (epochs,)
    settings = ReinforceConfig(
        runs=config.grid_runs, epochs=lengths, search_epochs=lengths
    )
    study, noising = GridStudy(settings), GridStudy(settings, noising=True)
    column_of = study.tables.belief.observations.numpy()
    target = study.target(0.0)
    others = {
        "uniform": np.full_like(target, 1 / target.shape[1]),
        # LEFT and RIGHT exchanged, UP and DOWN as well.
        "opposite": target[:, [1, 0, 3, 2]],
    }
    coefficient = coefficient_from_ratio(published_reinforce_ratio(epochs))
    (plain,) = study.returns([Arm(target, 0.0)], epochs)
    cells = [{"kind": "none", "amount": 0.0, "arm": "none", **summary(plain, plain)}]
    for kind, other in others.items():
        for share in _GRID_NOISE:
            mixed = (1 - share) * target + share * other
            (imm,) = study.returns([Arm(mixed, coefficient)], epochs)
            weights = [coefficient_from_ratio(ratio) for ratio in _NOISING_RATIOS]
            of_states = mixed[column_of]
            noised = noising.returns([Arm(of_states, w) for w in weights], epochs)
            mixtures = study.returns([Arm(mixed, 0.0, mu) for mu in _MIXTURES], epochs)
            arms = {
                "imm": imm,
                "noising, best ratio": noised[noised.mean(axis=1).argmax()],
                "interpolation, best mu": mixtures[mixtures.mean(axis=1).argmax()],
            }
            for name, values in arms.items():
                cells.append(
                    {
                        "kind": kind,
                        "amount": share,
                        "arm": name,
                        **summary(values, plain),
                    }
                )
    return cells


def _tempered(temperature: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(probs: np.ndarray) -> np.ndarray:
        powers = probs ** (1 / temperature), (1 - probs) ** (1 / temperature)
        return powers[0] / (powers[0] + powers[1])

    return change


def _flipped(share: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda probs: probs * (1 - share) + (1 - probs) * share


def _counted(task: Task, x: np.ndarray, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns P_hat of so many pairs at the runs' points, and at the test points.

    Every run has pairs of its own: `[R, n]` and `[R, N]`.
    """
    rng = task.rng(5, pairs)
    bins = int(np.clip(pairs // 10, 1, 20)) + 1
    targets = np.empty(x.shape[:2])
    test = np.empty((len(x), len(task.test_x)))
    for run in range(len(x)):
        features, labels = task.source.sample(pairs, rng)
        model = BinnedModel(bins).fit(features[:, 0], labels)
        targets[run] = model.probs(x[run, :, :1]).numpy()[:, 1]
        test[run] = model.probs(task.test_x[:, :1]).numpy()[:, 1]
    return targets, test
