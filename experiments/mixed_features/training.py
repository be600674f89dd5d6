"""Trains teachers and students, many instances at once."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from experiments.mixed_features.config import MixedConfig
from experiments.mixed_features.instances import Instances
from experiments.mixed_features.networks import PatchNetworks, transformed
from rlm_tf.training import ramp

_KD = 0.5


class Taught(NamedTuple):
    """Teachers, and what they say.

    Attributes:
        networks: Of the last epoch, or of the best one.
        said: `[S, N, K]`, probabilities of the training examples as they are; of
            cross-fitted teachers those of the fold that did not see an example.
        tested: `[S, T, K]`, of the test inputs, of all folds' mean.
        checkpoints: At each of them what was said of the training examples, and of
            the test inputs.
    """

    networks: PatchNetworks
    said: np.ndarray
    tested: np.ndarray
    checkpoints: list[tuple[np.ndarray, np.ndarray]]


class Terms(NamedTuple):
    """What a teacher is trained with.

    Attributes:
        lipschitz: Weight of the sum of constants.
        consistency: The largest weight of the distance to earlier epochs.
        ramp: How it rises.
        smoothing: Of labels.
        folds: Of cross-fitting; 1: none.
        stops: Whether the epoch is chosen on a fold that is held out.
    """

    lipschitz: float = 0.0
    consistency: float = 0.0
    ramp: str = "linear"
    smoothing: float = 0.0
    folds: int = 1
    stops: bool = False


def teach(
    config: MixedConfig, terms: Terms, train: Instances, test: Instances, seed: int
) -> Taught:
    """Trains a teacher for each instance; of cross-fitting one a fold."""
    number, count = train.labels.shape
    folds = config.folds if terms.stops else terms.folds
    fold = np.arange(count) % folds
    # Networks of an instance lie side by side; each leaves out its fold.
    copies = terms.folds
    x, y = (np.repeat(each, copies, axis=0) for each in (train.x, train.labels))
    weights = np.ones([number * copies, count], np.float32)
    if folds > 1:
        for network in range(number * copies):
            weights[network, fold == network % copies] = 0
    networks = PatchNetworks(
        number * copies, _widths(train, (config.units, config.units)), seed
    )
    trainer = _Teacher(config, terms, networks, x, y, weights)
    points = np.linspace(0, config.epochs, config.checkpoints + 1)[1:].astype(int)
    checkpoints, best = [], _Best(networks) if terms.stops else None
    for epoch in range(config.epochs):
        trainer.step(epoch, seed)
        if best is not None:
            best.look(trainer.held_out())
        elif copies == 1 and epoch + 1 in points:
            checkpoints.append((_probs(networks, train.x), _probs(networks, test.x)))
    if best is not None:
        best.restore()
    shape = [number, copies, count, -1]
    said = _probs(networks, x).reshape(shape)[:, fold % copies, np.arange(count)]
    tested = _probs(networks, np.repeat(test.x, copies, axis=0))
    tested = tested.reshape([number, copies, *tested.shape[1:]]).mean(axis=1)
    return Taught(networks, said, tested, checkpoints)


def learn(
    config: MixedConfig, said: np.ndarray | None, train: Instances, seed: int
) -> PatchNetworks:
    """Trains a student for each instance, on labels and on what teachers said."""
    units = (config.student_units,)
    networks = PatchNetworks(len(train.labels), _widths(train, units), 50 + seed)
    optimizer = _adam(config)
    x, y = tf.constant(train.x), tf.constant(train.labels)
    share = 0.0 if said is None else _KD
    target = tf.zeros(train.probs.shape) if said is None else tf.constant(said)

    @tf.function
    def step(epoch: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            seen = transformed(x, tf.stack([seed + 50, epoch]))
            patches = tf.reduce_mean(networks.patch_log_probs(seen), axis=2)
            own = -tf.gather(patches, y, axis=2, batch_dims=2)
            kd = -tf.reduce_sum(target * tf.nn.log_softmax(patches), axis=2)
            loss = tf.reduce_mean((1 - share) * own + share * kd, axis=1)
            # Each instance has a gradient of its own.
            total = tf.reduce_sum(loss)
        variables = networks.trainable_variables
        optimizer.apply(tape.gradient(total, variables), variables)

    optimizer.build(networks.trainable_variables)
    for epoch in range(config.epochs):
        step(tf.constant(epoch))
    return networks


class _Teacher:
    """The training of teachers, an epoch a step."""

    def __init__(
        self,
        config: MixedConfig,
        terms: Terms,
        networks: PatchNetworks,
        x: np.ndarray,
        y: np.ndarray,
        weights: np.ndarray,
    ) -> None:
        self._config = config
        self._terms = terms
        self._networks = networks
        self._x, self._y = tf.constant(x), tf.constant(y)
        self._weights = tf.constant(weights)
        self._sums = tf.Variable(tf.zeros([*y.shape, networks.kernels[-1].shape[-1]]))
        self._optimizer = _adam(config)
        self._optimizer.build(networks.trainable_variables)

    def step(self, epoch: int, seed: int) -> None:
        """Trains on all examples once."""
        weight = 0.0
        if self._terms.consistency and epoch:
            rise = ramp(self._terms.ramp, epoch + 1, self._config.epochs)
            weight = self._terms.consistency * float(rise)
        self._step(
            tf.constant([seed, epoch]),
            tf.constant(weight, tf.float32),
            tf.constant(1 / max(epoch, 1), tf.float32),
        )

    @tf.function
    def _step(self, seed: tf.Tensor, weight: tf.Tensor, share: tf.Tensor) -> None:
        terms, networks = self._terms, self._networks
        with tf.GradientTape() as tape:
            seen = transformed(self._x, seed)
            # Not normalised: the mean cross-entropy of the patches.
            patches = tf.reduce_mean(networks.patch_log_probs(seen), axis=2)
            own = -tf.gather(patches, self._y, axis=2, batch_dims=2)
            own *= 1 - terms.smoothing
            own -= terms.smoothing * tf.reduce_mean(patches, axis=2)
            loss = self._mean(own)
            if terms.lipschitz:
                loss += terms.lipschitz * networks.lipschitz()
            probs = tf.nn.softmax(patches)
            if terms.consistency:
                distance = tf.reduce_sum((probs - share * self._sums) ** 2, axis=2)
                loss += weight * self._mean(distance)
            total = tf.reduce_sum(loss)
        variables = networks.trainable_variables
        self._optimizer.apply(tape.gradient(total, variables), variables)
        if terms.consistency:
            self._sums.assign_add(probs)

    def _mean(self, values: tf.Tensor) -> tf.Tensor:
        weights = self._weights
        return tf.reduce_sum(weights * values, 1) / tf.reduce_sum(weights, 1)

    @tf.function
    def held_out(self) -> tf.Tensor:
        """Returns the mean loss of each network on what it leaves out, `[S]`."""
        log_probs = self._networks.log_probs(self._x)
        own = -tf.gather(log_probs, self._y, axis=2, batch_dims=2)
        left = 1 - self._weights
        return tf.reduce_sum(left * own, 1) / tf.reduce_sum(left, 1)


class _Best:
    """Weights of the best epoch, of each network on its own."""

    def __init__(self, networks: PatchNetworks) -> None:
        self._variables = networks.trainable_variables
        self._kept = [tf.Variable(each) for each in self._variables]
        number = self._variables[0].shape[0]
        self._least = tf.Variable(tf.fill([number], math.inf))

    @tf.function
    def look(self, losses: tf.Tensor) -> None:
        """Keeps the weights of networks that were never better."""
        better = losses < self._least
        self._least.assign(tf.where(better, losses, self._least))
        for kept, now in zip(self._kept, self._variables, strict=True):
            mask = tf.reshape(better, [-1, 1, 1])
            kept.assign(tf.where(mask, now, kept))

    def restore(self) -> None:
        """Puts them back."""
        for kept, now in zip(self._kept, self._variables, strict=True):
            now.assign(kept)


def _adam(config: MixedConfig) -> keras.optimizers.Optimizer:
    rate = keras.optimizers.schedules.PolynomialDecay(config.rate, config.epochs)
    return keras.optimizers.Adam(rate)


def _widths(train: Instances, hidden: tuple[int, ...]) -> list[int]:
    return [train.x.shape[-1], *hidden, train.probs.shape[-1]]


def _probs(networks: PatchNetworks, x: np.ndarray) -> np.ndarray:
    found: Any = tf.exp(networks.log_probs(tf.constant(x)))
    return np.asarray(found)


def tested(networks: PatchNetworks, test: Instances) -> np.ndarray:
    """Returns probabilities of the test inputs, `[S, T, K]`."""
    return _probs(networks, test.x)
