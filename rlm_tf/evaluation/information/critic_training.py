"""Trains the critics of an estimate, one for each fold."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.evaluation.information.critics import Kind, make_critic
from rlm_tf.objectives import mutual_information as bounds

Objective = Literal["jsd", "nwj", "info_nce"]
OBJECTIVES: tuple[Objective, ...] = ("jsd", "nwj", "info_nce")
# Rows of the matrix of scores that are computed at once.
_ROWS = 128
_BATCH = 128
_RATE = 3e-3
# Steps between validations; how many without gain end training.
_EVERY, _PATIENCE = 50, 8
# Steps at most, where nothing else is said.
MOST_STEPS = 4000
# Nats that are a gain: of constant text rounding alone makes less.
_LEAST_GAIN = 1e-6


class Split(NamedTuple):
    """Where the segments of a split begin, X and Y, `[N]` each."""

    first: np.ndarray
    second: np.ndarray

    def apart(self, segment: int) -> np.ndarray:
        """Returns which X and Y belong to other pairs and share no place, `[N, N]`."""
        distance = self.first[:, np.newaxis] - self.second
        return (np.abs(distance) >= segment) & ~np.eye(len(self.first), dtype=bool)


class Trained(NamedTuple):
    """What a critic finds, and the steps after which it is best; 0: it finds nothing.

    Attributes:
        valid: `mine` of the validation pairs, at least 0.
        mine: Of the test pairs.
        nwj: Likewise.
        steps: Of training.
        capped: Whether training ended before validation said so.
    """

    valid: float
    mine: float
    nwj: float
    steps: int
    capped: bool


class CriticTrainer:
    """Trains critics of one kind, one after the other, in functions traced once."""

    def __init__(
        self,
        stream: np.ndarray,
        segment: int,
        kind: Kind,
        objective: Objective,
        seed: int,
        most_steps: int = MOST_STEPS,
    ) -> None:
        self._stream = tf.constant(stream)
        self._most_steps = most_steps
        self._segment = segment
        self._objective = objective
        self._critic = make_critic(kind, int(stream.max()) + 1, segment, seed)
        self._variables = list(self._critic.trainable_variables)
        self._moments = [
            [tf.Variable(tf.zeros_like(v)) for v in self._variables] for _ in range(2)
        ]
        self._step = tf.function(self._train_step, autograph=False)
        self._sums = [
            tf.function(
                lambda x, side=side: self._critic.sums(side, self._segments(x)),
                autograph=False,
                reduce_retracing=True,
            )
            for side in range(2)
        ]
        self._scores = tf.function(
            self._critic.scores, autograph=False, reduce_retracing=True
        )

    def estimate(
        self,
        train: Split,
        valid: Split,
        test: Split,
        rng: np.random.Generator,
        dropout: float,
    ) -> Trained:
        """Trains a critic anew and tests it.

        Where no step finds anything on the validation pairs, the critic is a constant,
        and the estimates are 0.
        """
        self._critic.restart()
        self._critic.dropout.assign(dropout)
        for moments in self._moments:
            for moment in moments:
                moment.assign(tf.zeros_like(moment))
        best, best_steps, stale, capped = -math.inf, 0, 0, True
        weights = self._critic.weights()
        size = min(_BATCH, len(train.first))
        valid_apart = valid.apart(self._segment)
        for step in range(1, self._most_steps + 1):
            chosen = rng.integers(len(train.first), size=size)
            self._step(
                tf.constant(train.first[chosen]),
                tf.constant(train.second[chosen]),
                tf.constant(step, tf.int64),
            )
            if step % _EVERY:
                continue
            joint, apart = self._split_scores(valid, valid_apart)
            found = -float(bounds.mine_bound(joint, apart).loss)
            if found > best + _LEAST_GAIN:
                best, best_steps, stale = found, step, 0
                weights = self._critic.weights()
            else:
                stale += 1
                if stale >= _PATIENCE:
                    capped = False
                    break
        if best <= _LEAST_GAIN:
            return Trained(0.0, 0.0, 0.0, 0, capped)
        self._critic.set_weights(weights)
        _, apart = self._split_scores(valid, valid_apart)
        constant = float(np.logaddexp.reduce(apart)) - math.log(len(apart))
        joint, apart = self._split_scores(test, test.apart(self._segment))
        mine = -float(bounds.mine_bound(joint, apart).loss)
        nwj = -float(bounds.nwj_bound(joint, apart, log_baseline=constant).loss)
        return Trained(best, mine, nwj, best_steps, capped)

    def _segments(self, starts: tf.Tensor) -> tf.Tensor:
        places = starts[:, tf.newaxis] + tf.range(self._segment, dtype=starts.dtype)
        return tf.gather(self._stream, places)

    def _split_scores(
        self, split: Split, apart: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the scores of pairs that occur together, and of all `apart`."""
        x, y = (
            sums(tf.constant(side))
            for sums, side in zip(self._sums, split, strict=True)
        )
        rows = [
            self._scores(x[i : i + _ROWS], y).numpy()
            for i in range(0, len(split.first), _ROWS)
        ]
        scores = np.concatenate(rows).astype(np.float64)
        if self._objective == "info_nce":
            # It leaves a critic free to add anything to all pairs of an x.
            others = np.where(apart, scores, -np.inf)
            scores -= np.logaddexp.reduce(others, axis=1, keepdims=True)
        return np.diag(scores).copy(), scores[apart]

    def _train_step(self, first: tf.Tensor, second: tf.Tensor, step: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            scores = self._critic(self._segments(first), self._segments(second), step)
            loss = self._loss(scores)
        gradients = tape.gradient(loss, self._variables)
        # Keras' optimisers cannot begin anew without being traced again.
        count = tf.cast(step, tf.float32)
        for variable, gradient, mean, square in zip(
            self._variables, gradients, *self._moments, strict=True
        ):
            tf.raw_ops.ResourceApplyAdam(
                var=variable.handle,
                m=mean.handle,
                v=square.handle,
                beta1_power=0.9**count,
                beta2_power=0.999**count,
                lr=_RATE,
                beta1=0.9,
                beta2=0.999,
                epsilon=1e-7,
                grad=tf.convert_to_tensor(gradient),
            )

    def _loss(self, scores: tf.Tensor) -> tf.Tensor:
        if self._objective == "info_nce":
            return tf.reduce_mean(bounds.info_nce(scores).loss)
        joint = tf.linalg.diag_part(scores)
        number = scores.shape[0]
        places = np.flatnonzero(~np.eye(number, dtype=bool).reshape(-1))
        apart = tf.gather(tf.reshape(scores, [-1]), places)
        if self._objective == "nwj":
            return bounds.nwj_bound(joint, apart, log_baseline=0.0).loss
        return tf.reduce_mean(tf.nn.softplus(-joint)) + tf.reduce_mean(
            tf.nn.softplus(apart)
        )
