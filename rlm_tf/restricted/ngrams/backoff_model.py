"""Back-off n-gram models as Keras layers that make rows on demand inside graphs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Self

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import checked_tokens
from rlm_tf.restricted.ngrams.backoff_tables import BackoffLevel, BackoffTables
from rlm_tf.restricted.ngrams.context_rows import (
    Entries,
    LongRows,
    as_tensor,
    entries_of,
    extra_rows,
)
from rlm_tf.restricted.ngrams.model_file import read_tables, write_tables
from rlm_tf.restricted.restricted_model import (
    RestrictedModel,
    contexts_of,
)
from rlm_tf.restricted.sparse_probs import SparseProbs
from rlm_tf.typing import TensorLike


class BackoffModel(RestrictedModel):
    """A restricted model made of back-off tables (see `backoff_tables`).

    The tables are non-trainable weights and their sizes are part of the build
    configuration, so the file of any Keras model that owns this layer carries them. A
    row costs one product of length V and a sum of the words seen after the context;
    rows of equal contexts are made once. Inside graphs, an id outside `[0, V)` counts
    as a word never seen in a context. XLA cannot compile `log_probs` and `probs`: how
    many table entries they read depends on the data. Rows are float32 and exact to some
    1e-7; a file that gives a word far less than its back-off share (no Kneser-Ney model
    does) loses such a probability there, while `score` keeps it.

    Args:
        order: Length of the longest n-grams; the short context has `order - 1` words.
        floor: Weight of the uniform distribution in `(1 - floor) P + floor / V`.
        **kwargs: Arguments of `keras.layers.Layer`.
    """

    def __init__(self, order: int, *, floor: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.order = int(order)
        self.floor = self._checked_floor(floor)
        self.context_length = self.order - 1
        self.vocabulary_size = None

    def _checked_floor(self, floor: float) -> float:
        if not 0.0 <= floor <= 1.0:
            raise ValueError(
                f"{type(self).__name__}: `floor` must be in [0, 1], found {floor}."
            )
        return float(floor)

    # === Tables ===

    def _create_tables(
        self,
        vocabulary_size: int,
        sizes: list[list[int]],
        fill: Callable[[int, str, keras.Variable], Any] = lambda *_: None,
    ) -> None:
        """Makes empty tables.

        Args:
            vocabulary_size: V.
            sizes: (contexts + 1, entries) per level.
            fill: Given each table with its level and name as soon as it is there.
        """
        if self.vocabulary_size is not None:
            raise ValueError(
                f"{type(self).__name__} already has tables: make a new one instead."
            )

        def table(name: str, size: int, dtype: str) -> keras.Variable:
            return self.add_weight(
                name=name,
                shape=(size,),
                dtype=dtype,
                initializer="zeros",
                trainable=False,
                autocast=False,
            )

        self._base = table("base", vocabulary_size, "float64")
        self._levels: list[dict[str, keras.Variable]] = []
        for m, (contexts, entries) in enumerate(sizes, start=1):
            self._levels.append({})
            for name, size, dtype in (
                ("keys", contexts, "int64"),
                ("backoff", contexts, "float64"),
                ("row_splits", contexts + 1, "int64"),
                ("words", entries, "int32"),
                ("extra", entries, "float64"),
            ):
                weight = table(f"{name}_{m}", size, dtype)
                self._levels[-1][name] = weight
                # tf.train.Checkpoint does not look into lists of a Keras layer.
                setattr(self, f"_{name}_{m}", weight)
                fill(m, name, weight)
        self._table_sizes = [list(size) for size in sizes]
        self.vocabulary_size = vocabulary_size
        self.built = True

    def set_tables(self, tables: BackoffTables) -> None:
        """Creates the weights and fills them.

        Raises:
            ValueError: If the layer already has tables.
        """
        self._take_tables(BackoffTables(tables.base, [*tables.levels]))

    def _take_tables(self, tables: BackoffTables) -> None:
        """Does the same table by table, and leaves the given ones without levels.

        So large ones are not in memory twice.

        Raises:
            ValueError: If the layer already has tables.
        """
        sizes = [[len(level.keys), len(level.words)] for level in tables.levels]
        arrays = [dict(vars(level)) for level in tables.levels]
        tables.levels.clear()

        def fill(m: int, name: str, weight: keras.Variable) -> None:
            weight.assign(arrays[m - 1].pop(name))

        self._create_tables(len(tables.base), sizes, fill)
        self._base.assign(tables.base)

    def _share_tables(self, other: Self) -> None:
        """Takes another model's weights, in the order in which they are made."""
        self._base = other._base
        self._levels = []
        for m, weights in enumerate(other._levels, start=1):
            self._levels.append(dict(weights))
            for name, weight in weights.items():
                setattr(self, f"_{name}_{m}", weight)
        self._table_sizes = [list(size) for size in other._table_sizes]
        self.vocabulary_size = other.vocabulary_size
        self.built = True

    def tables(self) -> BackoffTables:
        """Returns the tables as NumPy arrays.

        Raises:
            ValueError: If there are none yet.
        """
        own = self._own_tables()
        levels = [
            BackoffLevel(**{name: array.copy() for name, array in vars(level).items()})
            for level in own.levels
        ]
        return BackoffTables(own.base.copy(), levels)

    def _own_tables(self) -> BackoffTables:
        """Returns the same without a copy: read-only, in the model's own memory."""
        self._known_vocabulary_size()
        levels = [
            BackoffLevel(**{n: np.asarray(as_tensor(w)) for n, w in weights.items()})
            for weights in self._levels
        ]
        return BackoffTables(np.asarray(as_tensor(self._base)), levels)

    def with_floor(self, floor: float) -> Self:
        """Returns this model with another floor; both have the same tables in memory.

        Args:
            floor: Weight of the uniform distribution, in [0, 1];
                `rlm_tf.evaluation.tune_floor` finds one on validation text.

        Raises:
            ValueError: If there are no tables yet, or `floor` is out of its range.
        """
        self._known_vocabulary_size()
        config = {**self.get_config(), "floor": self._checked_floor(floor)}
        del config["name"]
        model = type(self).from_config(config)
        model._share_tables(self)
        return model

    # === Rows in graphs ===

    def log_probs(self, short_contexts: TensorLike) -> tf.Tensor:
        return self._rows(short_contexts, log_space=True)

    def probs(self, short_contexts: TensorLike) -> tf.Tensor:
        return self._rows(short_contexts, log_space=False)

    def has_sparse_probs(self) -> bool:
        """Whether no n-gram has less than its back-off share; in ARPA files some may.

        Such a share `probs` lifts to 0, if it is negative, and a sum could not.
        """
        self._known_vocabulary_size()
        least = [tf.reduce_min(as_tensor(weights["extra"])) for weights in self._levels]
        return all(float(each) >= 0 for each in least)

    def sparse_probs(
        self, short_contexts: TensorLike, *, long_rows: int = 0
    ) -> SparseProbs:
        contexts = self._context_matrix(short_contexts)
        size = self._known_vocabulary_size()
        left = tf.fill([tf.shape(contexts)[0]], 1.0 - self.floor)
        parts = [Entries(*(tf.zeros([0], t) for t in (tf.int64, tf.int64, tf.float32)))]
        shares, bases = [], []
        numbers = self._context_numbers(contexts)
        # From the longest contexts down, each level has what those above leave.
        for level, number in reversed([*enumerate(numbers)]):
            weights, own = self._levels[level], number
            if long_rows and level == 0:
                long = LongRows.of(weights, long_rows, size)
                bases.append(long.rows)
                which = long.are(number)
                shares.append(tf.where(which, left[:, tf.newaxis], 0.0))
                unseen = tf.cast(self._table_sizes[0][0] - 1, number.dtype)
                own = tf.where(tf.reduce_any(which, axis=1), unseen, number)
            row, words, extra = entries_of(weights, own)
            parts.append(Entries(row, words, extra * tf.gather(left, row)))
            backoff = tf.gather(as_tensor(weights["backoff"]), number)
            left *= tf.cast(backoff, tf.float32)
        bases.append(tf.cast(as_tensor(self._base), tf.float32)[tf.newaxis])
        shares.append(left[:, tf.newaxis])
        if self.floor:
            bases.append(tf.fill([1, size], 1.0 / size))
            shares.append(tf.fill([tf.shape(contexts)[0], 1], self.floor))
        row, words, values = (
            tf.concat(each, axis=0) for each in zip(*parts, strict=True)
        )
        return SparseProbs(
            tf.concat(shares, axis=1), tf.concat(bases, axis=0), row, words, values
        )

    def missing_mass(self, short_contexts: TensorLike) -> tf.Tensor:
        """Returns the weight `gamma(u)` of the shorter context in `P(. | u)`.

        Args:
            short_contexts: As in `log_probs`.

        Returns:
            float32 `[N]`; 1 for contexts never seen, and for `order` 1. The floor does
            not count.
        """
        contexts = self._context_matrix(short_contexts)
        if not self._levels:
            return tf.ones([tf.shape(contexts)[0]])
        numbers = self._context_numbers(contexts)[-1]
        backoff = tf.gather(as_tensor(self._levels[-1]["backoff"]), numbers)
        return tf.cast(backoff, tf.float32)

    def _context_numbers(self, contexts: tf.Tensor) -> list[tf.Tensor]:
        size = self._known_vocabulary_size()
        numbers = tf.zeros([tf.shape(contexts)[0]], tf.int64)
        result = []
        for level, weights in enumerate(self._levels, start=1):
            table = as_tensor(weights["keys"])
            word = contexts[:, self.context_length - level]
            keys = numbers * size + word
            position = tf.searchsorted(table, keys, out_type=tf.int64)
            # Out of range, a word would alias the key of a neighbouring context.
            found = (tf.gather(table, position) == keys) & (word >= 0) & (word < size)
            unseen = tf.cast(tf.size(table) - 1, tf.int64)
            numbers = tf.where(found, position, unseen)
            result.append(numbers)
        return result

    def _rows(self, short_contexts: TensorLike, *, log_space: bool) -> tf.Tensor:
        contexts = self._context_matrix(short_contexts)
        size = self._known_vocabulary_size()
        count = tf.shape(contexts)[0]
        # Frequent words recur in a batch and have the longest rows: a level makes each
        # distinct row once, and `copies` says which of them belongs to each context.
        rows = tf.cast(as_tensor(self._base), tf.float32)[tf.newaxis, :]
        copies = tf.zeros([count], tf.int64)
        numbers = self._context_numbers(contexts)
        for level, (weights, number) in enumerate(
            zip(self._levels, numbers, strict=True), start=1
        ):
            contexts_of_level = self._table_sizes[level - 1][0]
            _, now = tf.unique(copies * contexts_of_level + number, tf.int64)
            distinct = tf.reduce_max(tf.concat([[-1], now], 0)) + 1
            first = tf.math.unsorted_segment_min(tf.range(count), now, distinct)
            if level > 1:  # Below, all rows are one.
                rows = tf.gather(rows, tf.gather(copies, first))
            number = tf.gather(number, first)
            backoff = tf.gather(as_tensor(weights["backoff"]), number)
            extra = extra_rows(weights, number, size)
            rows = tf.cast(backoff, tf.float32)[:, tf.newaxis] * rows + extra
            copies = now
        # Rounding may leave a probability that replaced a larger one below zero.
        rows = tf.nn.relu(rows)
        if self.floor:
            rows = rows * (1.0 - self.floor) + self.floor / size
        if log_space:
            rows = tf.math.log(rows)
        rows = tf.cond(
            tf.shape(rows)[0] == count, lambda: rows, lambda: tf.gather(rows, copies)
        )
        return tf.stop_gradient(tf.ensure_shape(rows, [None, size]))

    # === Exact values ===

    def score(self, tokens: npt.ArrayLike) -> np.ndarray:
        tables = self._own_tables()
        stream = checked_tokens("score", tokens, len(tables.base))
        contexts = contexts_of(stream, self.context_length)
        numbers = tables.context_numbers(contexts)
        probs = tables.word_probs(numbers, stream[self.context_length :])
        with np.errstate(divide="ignore"):
            return np.log(self._floored(np.maximum(probs, 0.0)))

    def probs_numpy(self, short_contexts: npt.ArrayLike) -> np.ndarray:
        """Returns `probs(short_contexts)` computed in float64, `[N, V]`."""
        contexts = self._context_matrix(np.asarray(short_contexts)).numpy()
        return self._floored(np.maximum(self._own_tables().rows(contexts), 0.0))

    def _floored(self, probs: np.ndarray) -> np.ndarray:
        if not self.floor:
            return probs
        return probs * (1.0 - self.floor) + self.floor / self._known_vocabulary_size()

    # === Files ===

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model to a file of its own; it appears when it is complete.

        Raises:
            ValueError: If the model has no tables yet.
        """
        tables = self._own_tables()
        description = {
            "class": type(self).__name__,
            "config": self.get_config(),
            "build_config": self.get_build_config(),
        }
        write_tables(path, description, tables)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads what `save` wrote.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If the file is damaged, or not one of this class.
        """
        description, tables = read_tables(path, cls.__name__)
        model = cls.from_config(description["config"])
        model.build_from_config(description["build_config"])
        model._base.assign(tables.base)
        for weights, level in zip(model._levels, tables.levels, strict=True):
            for name, weight in weights.items():
                weight.assign(vars(level).pop(name))
        return model

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "order": self.order, "floor": self.floor}

    def get_build_config(self) -> dict[str, Any] | None:
        if self.vocabulary_size is None:
            return None
        return {
            "vocabulary_size": self.vocabulary_size,
            "table_sizes": self._table_sizes,
        }

    def build_from_config(self, config: dict[str, Any] | None) -> None:
        if config:
            self._create_tables(config["vocabulary_size"], config["table_sizes"])
