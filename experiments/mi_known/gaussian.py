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

# From scores of every x with every y, `[N, N]`.
Scores = Callable[[tf.Tensor], tf.Tensor]
_RATE = 5e-4


def correlation(information: float, pairs: int) -> float:
    """Returns rho of pairs that have so many nats together."""
    return math.sqrt(1 - math.exp(-2 * information / pairs))


def split(scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the scores on the diagonal `[N]`, and all others."""
    number = scores.shape[0]
    apart = np.flatnonzero(~np.eye(number, dtype=bool).reshape(-1))
    joint = tf.linalg.diag_part(scores)
    return joint, tf.gather(tf.reshape(scores, [-1]), apart)


def _proxy(scores: tf.Tensor) -> tf.Tensor:
    joint, apart = split(scores)
    return tf.reduce_mean(tf.nn.softplus(-joint)) + tf.reduce_mean(
        tf.nn.softplus(apart)
    )


# By estimator: what its critic is trained by, and what is read off its scores.
ESTIMATORS: Mapping[str, tuple[Scores, Scores]] = {
    "Eq. (6), read by MINE": (
        _proxy,
        lambda scores: -bounds.mine_bound(*split(scores)).loss,
    ),
    "MINE": (
        lambda scores: bounds.mine_bound(*split(scores)).loss,
        lambda scores: -bounds.mine_bound(*split(scores)).loss,
    ),
    "NWJ": (
        lambda scores: bounds.nwj_bound(*split(scores)).loss,
        lambda scores: -bounds.nwj_bound(*split(scores)).loss,
    ),
    "SMILE": (
        # Trained by Eq. (6), as its authors do.
        _proxy,
        lambda scores: -bounds.smile_estimate(*split(scores)).loss,
    ),
    "InfoNCE": (
        lambda scores: tf.reduce_mean(bounds.info_nce(scores).loss),
        lambda scores: -tf.reduce_mean(bounds.info_nce(scores).loss),
    ),
}


def gaussian(config: KnownConfig) -> dict[str, Any]:
    """Returns what each estimator says of each information, seed by seed."""
    cells = []
    # One critic serves two estimators that differ in how it is read.
    trainers = {
        name: _Trainer(config, train)
        for name, (train, _) in ESTIMATORS.items()
        if name != "SMILE"
    }
    for information in config.gaussian_information:
        found: dict[str, list[dict[str, float]]] = {name: [] for name in ESTIMATORS}
        for seed in tqdm.tqdm(config.seeds, desc=f"{information:g} nats", disable=None):
            for name, trainer in trainers.items():
                began = time.perf_counter()
                readers = {name: ESTIMATORS[name][1]}
                if name == "Eq. (6), read by MINE":
                    readers["SMILE"] = ESTIMATORS["SMILE"][1]
                read = trainer.estimates(information, seed, readers)
                seconds = time.perf_counter() - began
                for reader, (mean, deviation) in read.items():
                    found[reader].append(
                        {"mean": mean, "deviation": deviation, "seconds": seconds}
                    )
        cells += [
            {"estimator": name, "information": information, "runs": runs}
            for name, runs in found.items()
        ]
    return {"cells": cells}


class _Trainer:
    """Trains critics T(x, y) = f(x) . g(y) by one objective, traced once."""

    def __init__(self, config: KnownConfig, objective: Scores) -> None:
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

    def estimates(
        self, information: float, seed: int, readers: Mapping[str, Scores]
    ) -> dict[str, tuple[float, float]]:
        """Trains a critic anew; returns means and deviations over test batches."""
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
        read: dict[str, list[float]] = {name: [] for name in readers}
        for batch in range(config.gaussian_test):
            step = tf.constant(config.gaussian_steps + batch, tf.int64)
            scores = self._scores(step)
            for name, reader in readers.items():
                read[name].append(float(reader(scores)))
        return {
            name: (float(np.mean(values)), float(np.std(values, ddof=1)))
            for name, values in read.items()
        }

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
