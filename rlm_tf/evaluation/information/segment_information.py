"""How much two segments of a text, some tokens apart, tell of each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_integer, check_option, checked_tokens
from rlm_tf.evaluation.information.critics import KINDS, Kind, make_critic
from rlm_tf.objectives import mutual_information as bounds

Objective = Literal["jsd", "nwj", "info_nce"]
OBJECTIVES: tuple[Objective, ...] = ("jsd", "nwj", "info_nce")
_LEAST_FOLDS = 3
# Pairs that a critic is validated and tested on, at most.
_MOST_PAIRS = 2000
# Rows of the matrix of scores that are computed at once.
_ROWS = 128
_BATCH = 128
_RATE = 3e-3
# Shares of positions that are dropped in training; the best is found on fold 0.
_DROPOUTS = (0.0, 0.3, 0.7)
# Steps between validations; how many without gain end training; steps at most.
_EVERY, _PATIENCE, _MOST_STEPS = 50, 8, 4000


class Estimate(NamedTuple):
    """A number and how far folds differ in it, in nats.

    Attributes:
        mean: Over folds.
        deviation: Standard deviation over folds.
        standard_error: Of the mean, deviation / sqrt(folds). Folds share training
            text: it is a lower bound.
        folds: The values.
    """

    mean: float
    deviation: float
    standard_error: float
    folds: list[float]


class SegmentInformation(NamedTuple):
    """Estimates of the mutual information of two segments.

    Attributes:
        mine: Eq. (4) of Cao and Xu (2019) on test pairs.
        nwj: The bound of Nguyen, Wainwright and Jordan with the validation pairs'
            constant: of no sample more on average than the information is.
        shuffled: `mine` of critics trained and tested on pairs that were re-paired,
            which share nothing.
        ceiling: Log of the number of test pairs drawn apart: estimates near it mean
            nothing.
        pairs: Test pairs of a fold that occur together.
        steps: Training steps of each fold's best critic.
        dropout: Share of positions that were dropped in training.
    """

    mine: Estimate
    nwj: Estimate
    shuffled: Estimate
    ceiling: float
    pairs: int
    steps: list[int]
    dropout: float


class _Split(NamedTuple):
    """Where the segments of a split begin, X and Y, `[N]` each."""

    first: np.ndarray
    second: np.ndarray

    def repaired(self, rng: np.random.Generator) -> _Split:
        """Returns the same segments in other pairs."""
        return _Split(self.first, rng.permutation(self.second))


def segment_information(
    tokens: npt.ArrayLike,
    *,
    segment: int = 40,
    gap: int = 10,
    folds: int = 10,
    seed: int = 0,
    critic: Kind = "separable",
    objective: Objective = "jsd",
) -> SegmentInformation:
    """Estimates I(X; Y) of segments X and Y with `gap` tokens between them.

    The protocol of Cao and Xu (2019, section 4.2), where it says nothing, as here: the
    text is cut into `folds` contiguous blocks, of which fold k tests a critic, k + 1
    stops its training, and the others train it; no pair lies over an edge. A critic is
    trained by Eq. (6) on all pairs of a batch, until `mine` of the validation pairs has
    not risen for some time. How many positions are dropped meanwhile is chosen on the
    validation pairs of the first fold: none where words are few, most in real text.

    The estimate grows with the text, as critics need examples: compare texts of one
    length.

    Args:
        tokens: int `[N]`.
        segment: Tokens of a segment.
        gap: Tokens between the two.
        folds: At least 3.
        seed: Of critics and batches.
        critic: "separable", "mlp" or "large".
        objective: What critics are trained by: "jsd" (Eq. 6), "nwj", or "info_nce",
            with which scores are normalised for each x.

    Raises:
        ValueError: If the text is too short for the folds, or an argument out of range.
    """
    name = "segment_information"
    check_integer(name, "segment", segment, 1)
    check_integer(name, "gap", gap, 0)
    check_integer(name, "folds", folds, _LEAST_FOLDS)
    check_integer(name, "seed", seed, 0)
    check_option(name, "critic", critic, KINDS)
    check_option(name, "objective", objective, OBJECTIVES)
    stream = checked_tokens(name, tokens, np.iinfo(np.int32).max, dtype=np.int32)
    span = 2 * segment + gap
    # Two pairs that do not overlap in each block.
    least = folds * (span + segment)
    if len(stream) < least:
        raise ValueError(
            f"segment_information: {folds} folds of pairs of {segment} tokens, {gap} "
            f"apart, need {least:,} tokens; the text has {len(stream):,}. Give fewer "
            "`folds`, a shorter `segment` or more text."
        )
    edges = np.linspace(0, len(stream), folds + 1).astype(np.int64)
    trainer = _Trainer(stream, segment, critic, objective, seed)
    rows, dropout = [], None
    for fold in range(folds):
        blocks = [(fold + i) % folds for i in range(folds)]
        test, valid = (
            _spaced(edges[b], edges[b + 1], segment, gap) for b in blocks[:2]
        )
        train = _all(edges, blocks[2:], segment, gap)
        rng = np.random.default_rng([seed, fold])
        tried = [
            (rate, trainer.estimate(train, valid, test, rng, rate))
            for rate in (_DROPOUTS if dropout is None else (dropout,))
        ]
        dropout, found = max(tried, key=lambda each: each[1].valid)
        control = trainer.estimate(
            train.repaired(rng), valid.repaired(rng), test.repaired(rng), rng, dropout
        )
        rows.append((found.mine, found.nwj, control.mine, found.steps, len(test.first)))
    mine, nwj, shuffled, steps, sizes = zip(*rows, strict=True)
    pairs = min(sizes)
    return SegmentInformation(
        estimate(mine),
        estimate(nwj),
        estimate(shuffled),
        math.log(max(pairs * (pairs - 1), 1)),
        pairs,
        list(steps),
        float(dropout or 0.0),
    )


def estimate(values: Sequence[float]) -> Estimate:
    """Summarises the values of folds."""
    deviation = float(np.std(values, ddof=1))
    error = deviation / math.sqrt(len(values))
    return Estimate(float(np.mean(values)), deviation, error, list(values))


# === Pairs ===


def _spaced(begin: int, end: int, segment: int, gap: int) -> _Split:
    """Returns pairs of a block whose X do not overlap."""
    number = (end - begin - 2 * segment - gap) // segment + 1
    step = max(segment, -(-number // _MOST_PAIRS) * segment)
    first = np.arange(begin, end - 2 * segment - gap + 1, step)
    return _Split(first, first + segment + gap)


def _all(edges: np.ndarray, blocks: list[int], segment: int, gap: int) -> _Split:
    """Returns all pairs of some blocks."""
    span = 2 * segment + gap
    first = np.concatenate(
        [np.arange(edges[b], edges[b + 1] - span + 1) for b in blocks]
    )
    return _Split(first, first + segment + gap)


# === Training ===


class _Found(NamedTuple):
    valid: float
    mine: float
    nwj: float
    steps: int


class _Trainer:
    """Trains critics of one kind, one after the other, in functions traced once."""

    def __init__(
        self,
        stream: np.ndarray,
        segment: int,
        kind: Kind,
        objective: Objective,
        seed: int,
    ) -> None:
        self._stream = tf.constant(stream)
        self._segment = segment
        self._objective = objective
        self._critic = make_critic(kind, int(stream.max()) + 1, segment, seed)
        self._variables = list(self._critic.trainable_variables)
        self._moments = [
            [tf.Variable(tf.zeros_like(v)) for v in self._variables] for _ in range(2)
        ]
        self._step = tf.function(self._train_step, autograph=False)
        self._scores = tf.function(
            lambda x, y: self._critic(self._segments(x), self._segments(y)),
            autograph=False,
            reduce_retracing=True,
        )

    def estimate(
        self,
        train: _Split,
        valid: _Split,
        test: _Split,
        rng: np.random.Generator,
        dropout: float,
    ) -> _Found:
        """Trains a critic anew and tests it."""
        self._critic.restart()
        self._critic.dropout.assign(dropout)
        for moments in self._moments:
            for moment in moments:
                moment.assign(tf.zeros_like(moment))
        best, best_steps, stale = -math.inf, 0, 0
        weights = self._critic.weights()
        size = min(_BATCH, len(train.first))
        for step in range(1, _MOST_STEPS + 1):
            chosen = rng.integers(len(train.first), size=size)
            self._step(
                tf.constant(train.first[chosen]),
                tf.constant(train.second[chosen]),
                tf.constant(step, tf.int64),
            )
            if step % _EVERY:
                continue
            joint, apart = self._split_scores(valid)
            found = -float(bounds.mine_bound(joint, apart).loss)
            if found > best:
                best, best_steps, stale = found, step, 0
                weights = self._critic.weights()
            else:
                stale += 1
                if stale >= _PATIENCE:
                    break
        self._critic.set_weights(weights)
        _, apart = self._split_scores(valid)
        constant = float(np.logaddexp.reduce(apart)) - math.log(len(apart))
        joint, apart = self._split_scores(test)
        mine = -float(bounds.mine_bound(joint, apart).loss)
        nwj = -float(bounds.nwj_bound(joint, apart, log_baseline=constant).loss)
        return _Found(best, mine, nwj, best_steps)

    def _segments(self, starts: tf.Tensor) -> tf.Tensor:
        places = starts[:, tf.newaxis] + tf.range(self._segment, dtype=starts.dtype)
        return tf.gather(self._stream, places)

    def _split_scores(self, split: _Split) -> tuple[np.ndarray, np.ndarray]:
        """Returns the scores of pairs that occur together, and of all others."""
        second = tf.constant(split.second)
        rows = [
            self._scores(tf.constant(split.first[i : i + _ROWS]), second).numpy()
            for i in range(0, len(split.first), _ROWS)
        ]
        scores = np.concatenate(rows).astype(np.float64)
        apart = ~np.eye(len(scores), dtype=bool)
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
        # Adam; Keras' optimisers cannot begin anew without being traced again.
        count = tf.cast(step, tf.float32)
        rate = _RATE * tf.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        for variable, gradient, mean, square in zip(
            self._variables, gradients, *self._moments, strict=True
        ):
            gradient = tf.convert_to_tensor(gradient)
            mean.assign(0.9 * mean + 0.1 * gradient)
            square.assign(0.999 * square + 0.001 * tf.square(gradient))
            variable.assign_sub(rate * mean / (tf.sqrt(square) + 1e-7))

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
