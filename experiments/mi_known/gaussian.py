"""Pairs of normal variables: five estimators, one kind of critic."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tqdm

from experiments.mi_known.config import KnownConfig
from rlm_tf.objectives import mutual_information as bounds

# From scores of every x with every y, `[N, N]`, to what a critic is trained by.
Objective = Callable[[tf.Tensor], tf.Tensor]
# From scores of test batches, `[batches, N, N]`, to an estimate.
Reader = Callable[[tf.Tensor], float]
# Test batches are parted into so many, for a deviation.
_PARTS = 4
_RATE = 5e-4


def correlation(information: float, pairs: int) -> float:
    """Returns rho of pairs that have so many nats together."""
    return math.sqrt(1 - math.exp(-2 * information / pairs))


def split(scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the scores on diagonals `[..., N]`, and all others `[..., N (N - 1)]`."""
    number = scores.shape[-1]
    apart = np.flatnonzero(~np.eye(number, dtype=bool).reshape(-1))
    flat = tf.reshape(scores, [*scores.shape[:-2], number * number])
    return tf.linalg.diag_part(scores), tf.gather(flat, apart, axis=-1)


def _proxy(scores: tf.Tensor) -> tf.Tensor:
    joint, apart = split(scores)
    return tf.reduce_mean(tf.nn.softplus(-joint)) + tf.reduce_mean(
        tf.nn.softplus(apart)
    )


# What critics are trained by.
OBJECTIVES: Mapping[str, Objective] = {
    "jsd": _proxy,
    "mine": lambda scores: bounds.mine_bound(*split(scores)).loss,
    "nwj": lambda scores: bounds.nwj_bound(*split(scores)).loss,
    "info_nce": lambda scores: tf.reduce_mean(bounds.info_nce(scores).loss),
}


def pooled(scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the scores on diagonals and all others, of all batches, `[n]` each."""
    joint, apart = split(scores)
    return tf.reshape(joint, [-1]), tf.reshape(apart, [-1])


def pooled_mine(scores: tf.Tensor) -> float:
    """Reads Eq. (4) off all batches together."""
    return -float(bounds.mine_bound(*pooled(scores)).loss)


def batches_mine(scores: tf.Tensor) -> float:
    """Reads Eq. (4) off each batch; their mean is above that of all, and no bound."""
    return float(np.mean([pooled_mine(each[tf.newaxis]) for each in scores]))


def held_out_nwj(scores: tf.Tensor) -> float:
    """Reads NWJ off half of the batches, with the best constant of the others."""
    half = len(scores) // 2
    _, apart = pooled(scores[:half])
    constant = float(tf.reduce_logsumexp(apart)) - math.log(int(tf.size(apart)))
    found = bounds.nwj_bound(*pooled(scores[half:]), log_baseline=constant)
    return -float(found.loss)


# By estimator: what its critic is trained by, and what is read off its scores.
ESTIMATORS: Mapping[str, tuple[str, Reader]] = {
    "Eq. (6), read by MINE": ("jsd", pooled_mine),
    "the same, the mean of batches (no bound)": ("jsd", batches_mine),
    "Eq. (6), read by NWJ, constant held out": ("jsd", held_out_nwj),
    "MINE": ("mine", pooled_mine),
    "MINE, the mean of batches (no bound)": ("mine", batches_mine),
    "MINE, read by NWJ, constant held out": ("mine", held_out_nwj),
    "NWJ": (
        "nwj",
        lambda scores: -float(bounds.nwj_bound(*pooled(scores)).loss),
    ),
    # Trained by Eq. (6), as its authors do.
    "SMILE (no bound)": (
        "jsd",
        lambda scores: -float(bounds.smile_estimate(*pooled(scores)).loss),
    ),
    "InfoNCE": (
        "info_nce",
        lambda scores: float(
            np.mean([-bounds.info_nce(each).loss.numpy().mean() for each in scores])
        ),
    ),
}


def gaussian(config: KnownConfig) -> dict[str, Any]:
    """Returns what each estimator says of each information, seed by seed."""
    cells = []
    # One critic serves all estimators that differ in how it is read.
    trainers = {name: _Trainer(config, each) for name, each in OBJECTIVES.items()}
    for information in config.gaussian_information:
        found: dict[str, list[dict[str, float]]] = {name: [] for name in ESTIMATORS}
        for seed in tqdm.tqdm(config.seeds, desc=f"{information:g} nats", disable=None):
            for objective, trainer in trainers.items():
                began = time.perf_counter()
                scores = trainer.test_scores(information, seed)
                seconds = time.perf_counter() - began
                for name, (trained_by, read) in ESTIMATORS.items():
                    if trained_by == objective:
                        parts = [read(part) for part in tf.split(scores, _PARTS)]
                        found[name].append(
                            {
                                "mean": read(scores),
                                "deviation": float(np.std(parts, ddof=1)),
                                "seconds": seconds,
                            }
                        )
        cells += [
            {"estimator": name, "information": information, "runs": runs}
            for name, runs in found.items()
        ]
    return {"cells": cells}


class _Trainer:
    """Trains critics T(x, y) = f(x) . g(y) by one objective, traced once."""

    def __init__(self, config: KnownConfig, objective: Objective) -> None:
        self.config = config
        self._objective = objective
        keras.utils.set_random_seed(0)
        self._networks = [self._network() for _ in range(2)]
        self._weights = [v for net in self._networks for v in net.trainable_variables]
        self._optimizer = keras.optimizers.Adam(_RATE)
        self._optimizer.build(self._weights)
        self._rho = tf.Variable(0.0)
        self._seed = tf.Variable(0, dtype=tf.int64)
        self._steps = tf.function(self._train)
        self._scores = tf.function(lambda step: self._pairs_scored(step))

    def _network(self) -> keras.Model:
        config = self.config
        units = config.gaussian_units
        return keras.Sequential(
            [
                keras.Input((config.gaussian_pairs,)),
                keras.layers.Dense(units, activation="relu"),
                keras.layers.Dense(units, activation="relu"),
                keras.layers.Dense(32),
            ]
        )

    def test_scores(self, information: float, seed: int) -> tf.Tensor:
        """Trains a critic anew; returns its scores of test batches, `[.., N, N]`."""
        config = self.config
        self._rho.assign(correlation(information, config.gaussian_pairs))
        self._seed.assign(seed)
        rng = np.random.default_rng(seed)
        for weight in self._weights:
            scale = weight.shape[0] ** -0.5 if len(weight.shape) == 2 else 0.0
            weight.assign(rng.normal(0, scale or 1.0, weight.shape) * bool(scale))
        for variable in self._optimizer.variables:
            if "learning_rate" not in variable.path:
                variable.assign(tf.zeros_like(variable.value))
        self._steps()
        first = config.gaussian_steps
        return tf.stack(
            [
                self._scores(tf.constant(first + batch, tf.int64))
                for batch in range(config.gaussian_test)
            ]
        )

    def _train(self) -> None:
        for step in tf.range(self.config.gaussian_steps, dtype=tf.int64):
            with tf.GradientTape() as tape:
                loss = self._objective(self._pairs_scored(step))
            gradients = tape.gradient(loss, [w.value for w in self._weights])
            self._optimizer.apply(gradients, self._weights)

    def _pairs_scored(self, step: tf.Tensor) -> tf.Tensor:
        shape = [2, self.config.gaussian_batch, self.config.gaussian_pairs]
        seed = tf.stack([self._seed, step])
        x, noise = tf.unstack(tf.random.stateless_normal(shape, seed))
        y = self._rho * x + tf.sqrt(1 - tf.square(self._rho)) * noise
        first, second = (net(v) for net, v in zip(self._networks, (x, y), strict=True))
        return tf.matmul(first, second, transpose_b=True)
