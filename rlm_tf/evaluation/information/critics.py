"""Critics of pairs of segments: small networks that an estimate trains anew."""

from __future__ import annotations

import abc
from typing import Literal

import numpy as np
import tensorflow as tf

from rlm_tf.seeds import Seeds

Kind = Literal["separable", "mlp", "large"]
KINDS: tuple[Kind, ...] = ("separable", "mlp", "large")
_WIDTH, _LARGE_WIDTH = 64, 256
# Of embeddings: a critic that begins with scores near 0 need not unlearn them.
_SCALE = 0.05


class Critic(tf.Module, abc.ABC):
    """Scores every x with every y.

    Each segment is a sum of embedded tokens, weighed by position and feature, so that
    order can count; x and y have tables of their own. In training whole positions are
    dropped, as many as `dropout` says, which may be assigned.

    Args:
        vocabulary_size: V.
        segment: L, tokens of a segment.
        width: D of the embeddings, and of what is behind them.
        seed: Of weights and dropout.
    """

    def __init__(
        self, vocabulary_size: int, segment: int, width: int = _WIDTH, seed: int = 0
    ) -> None:
        super().__init__()
        self.width = width
        self.dropout = tf.Variable(0.0, trainable=False)
        self._random = np.random.default_rng(Seeds(seed, self).next())
        self._seed = tf.constant([seed, 3], tf.int64)
        self.tables = [
            self.normal(vocabulary_size, width, scale=_SCALE) for _ in range(2)
        ]
        self.positions = [
            tf.Variable(np.full((segment, width), segment**-0.5, np.float32))
            for _ in range(2)
        ]
        self.offset = tf.Variable(0.0)
        self.create()
        self._start = [variable.numpy() for variable in self.trainable_variables]

    @abc.abstractmethod
    def create(self) -> None:
        """Creates the weights behind the sums of embeddings."""

    @abc.abstractmethod
    def pair(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        """Returns scores `[N, M]` of sums `[N, D]` and `[M, D]`."""

    def normal(self, *shape: int, scale: float | None = None) -> tf.Variable:
        """Returns normal weights, by default of variance 1 / rows."""
        scale = shape[0] ** -0.5 if scale is None else scale
        return tf.Variable(self._random.normal(0, scale, shape).astype(np.float32))

    def restart(self) -> None:
        """Sets all weights to what they began with."""
        self.set_weights(self._start)

    def weights(self) -> list[np.ndarray]:
        """Returns copies of all weights."""
        return [variable.numpy() for variable in self.trainable_variables]

    def set_weights(self, weights: list[np.ndarray]) -> None:
        """Puts weights in place of the present ones."""
        for variable, value in zip(self.trainable_variables, weights, strict=True):
            variable.assign(value)

    def __call__(
        self, x: tf.Tensor, y: tf.Tensor, step: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Returns the score of every x with every y, `[N, M]`.

        Args:
            x: int `[N, L]`.
            y: int `[M, L]`.
            step: Of training, int64, which dropout is a function of; None: no dropout.
        """
        return self.scores(
            *(self.sums(side, tokens, step) for side, tokens in enumerate((x, y)))
        )

    def scores(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        """Returns scores `[N, M]` of what `sums` gives of both sides."""
        return self.pair(x, y) + self.offset

    def sums(
        self, side: int, tokens: tf.Tensor, step: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Returns sums of embedded tokens, `[N, D]`, of x (side 0) or y (side 1)."""
        embedded = tf.gather(self.tables[side], tokens) * self.positions[side]
        if step is not None:
            seed = tf.random.experimental.stateless_fold_in(self._seed, 2 * step + side)
            noise = tf.random.stateless_uniform(tf.shape(tokens), seed)
            kept = tf.cast(noise >= self.dropout, tf.float32) / (1 - self.dropout)
            embedded *= kept[..., tf.newaxis]
        return tf.reduce_sum(embedded, axis=1)


class SeparableCritic(Critic):
    """T(x, y) = f(x) . g(y) + c: all pairs of a batch for the price of one product."""

    def create(self) -> None:
        self.hidden = [self.normal(self.width, self.width) for _ in range(2)]
        self.biases = [tf.Variable(tf.zeros([self.width])) for _ in range(2)]
        self.outputs = [self.normal(self.width, self.width) for _ in range(2)]

    def pair(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        features = []
        for side, sums in enumerate((x, y)):
            hidden = tf.tanh(tf.matmul(sums, self.hidden[side]) + self.biases[side])
            features.append(sums + tf.matmul(hidden, self.outputs[side]))
        return tf.matmul(features[0], features[1], transpose_b=True)


class JointCritic(Critic):
    """T(x, y) = v . relu(A x + B y + a) + c: pairs are seen together."""

    def create(self) -> None:
        self.hidden = [self.normal(self.width, self.width) for _ in range(2)]
        self.bias = tf.Variable(tf.zeros([self.width]))
        self.score = self.normal(self.width, 1)

    def pair(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        from_x = tf.matmul(x, self.hidden[0])[:, tf.newaxis]
        from_y = tf.matmul(y, self.hidden[1])[tf.newaxis]
        hidden = tf.nn.relu(from_x + from_y + self.bias)
        return tf.tensordot(hidden, self.score[:, 0], axes=1)


def make_critic(kind: Kind, vocabulary_size: int, segment: int, seed: int) -> Critic:
    """Returns a critic: separable, "mlp" (`JointCritic`), or separable and "large"."""
    if kind == "mlp":
        return JointCritic(vocabulary_size, segment, seed=seed)
    width = _LARGE_WIDTH if kind == "large" else _WIDTH
    return SeparableCritic(vocabulary_size, segment, width, seed=seed)
