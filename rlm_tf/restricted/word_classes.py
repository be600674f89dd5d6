"""A restricted model that sees of the last word only its class."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import scipy.cluster.vq
import scipy.sparse
import scipy.sparse.linalg
import tensorflow as tf

from rlm_tf.checks import check_integer, checked_tokens
from rlm_tf.restricted.restricted_model import RestrictedModel
from rlm_tf.typing import TensorLike


@keras.saving.register_keras_serializable("rlm_tf")
class WordClassModel(RestrictedModel):
    """`P(next word | class of the last word)`, a restriction that is not linear.

    Between a unigram (one class) and a bigram model (every word its own class). Counts
    are smoothed by absolute discounting, interpolated with how often words follow:

        P(w | c) = max(n(c, w) - D, 0) / n(c) + D N1+(c, .) / n(c) * n(w) / T

    with `D = n1 / (n1 + 2 n2)` of the counts of counts (0.5 where they are degenerate).
    A class without occurrences has the unigram distribution.

    Args:
        vocabulary_size: V.
        num_classes: C, at most V.
    """

    context_length = 1

    def __init__(self, vocabulary_size: int, num_classes: int, **kwargs: Any):
        super().__init__(**{"trainable": False, **kwargs})
        check_integer("WordClassModel", "vocabulary_size", vocabulary_size, 1)
        check_integer("WordClassModel", "num_classes", num_classes, 1)
        if num_classes > vocabulary_size:
            raise ValueError(
                f"WordClassModel: `num_classes` must be at most `vocabulary_size`, "
                f"{vocabulary_size}; found {num_classes}."
            )
        self.vocabulary_size = vocabulary_size
        self.num_classes = num_classes
        self.classes = self.add_weight(
            shape=(vocabulary_size,),
            dtype="int32",
            initializer="zeros",
            trainable=False,
            name="classes",
        )
        self.table = self.add_weight(
            shape=(num_classes, vocabulary_size),
            initializer=keras.initializers.Constant(-np.log(vocabulary_size)),
            trainable=False,
            name="log_probs",
        )
        self.built = True

    def fit(self, tokens: npt.ArrayLike, classes: npt.ArrayLike) -> WordClassModel:
        """Counts what follows each class; returns itself.

        Args:
            tokens: int `[T]`, one stream of at least two words.
            classes: int `[V]`, the class of every word, in [0, C); see `word_classes`.

        Raises:
            ValueError: If the arguments are no such arrays.
        """
        size = self._known_vocabulary_size()
        stream = checked_tokens("WordClassModel.fit", tokens, size)
        given = checked_tokens(
            "WordClassModel.fit", classes, self.num_classes, "classes"
        )
        if len(given) != size or len(stream) < 2:
            raise ValueError(
                f"WordClassModel.fit: `classes` must have one entry a word, {size}, "
                f"and `tokens` two words at least; found {len(given)} and "
                f"{len(stream)}."
            )
        pairs = given[stream[:-1]] * np.int64(size) + stream[1:]
        keys, counts = np.unique(pairs, return_counts=True)
        rows, columns = np.divmod(keys, size)
        totals = np.bincount(rows, counts, minlength=self.num_classes)
        kinds = np.bincount(rows, minlength=self.num_classes)
        once, twice = np.sum(counts == 1), np.sum(counts == 2)
        discount = once / (once + 2 * twice) if once and twice else 0.5
        unigram = np.bincount(stream, minlength=size) / len(stream)
        known = np.maximum(totals, 1)
        share = np.where(totals > 0, discount * kinds / known, 1.0)
        table = share[:, np.newaxis] * unigram
        table[rows, columns] += (counts - discount) / known[rows]
        with np.errstate(divide="ignore"):
            self.table.assign(np.log(table))
        self.classes.assign(given)
        return self

    def coarse(self, words: TensorLike) -> tf.Tensor:
        """Returns the classes of words, int32 `[...]`."""
        return tf.gather(tf.convert_to_tensor(self.classes), words)

    def log_probs(self, short_contexts: TensorLike) -> tf.Tensor:
        """Returns float32 `[N, V]` for last words `[N]`; see `RestrictedModel`."""
        words = self._context_matrix(short_contexts)[:, 0]
        return tf.gather(tf.convert_to_tensor(self.table), self.coarse(words))

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.update(
            vocabulary_size=self.vocabulary_size, num_classes=self.num_classes
        )
        return config


def word_classes(
    tokens: npt.ArrayLike, vocabulary_size: int, num_classes: int, seed: int = 0
) -> np.ndarray:
    """Returns a class for every word, by what follows it: int32 `[V]`.

    The matrix of square-rooted shares of the words that follow each word is reduced to
    its leading singular vectors, scaled by the singular values, and clustered by
    k-means; rows are weighted by the square root of their counts, so that rare words
    do not make classes of their own.

    Args:
        tokens: int `[T]`.
        vocabulary_size: V.
        num_classes: C, at most V.
        seed: Of singular vectors and k-means.

    Raises:
        ValueError: If `tokens` is not a stream of ids, or there are more classes than
            words.
    """
    stream = checked_tokens("word_classes", tokens, vocabulary_size)
    check_integer("word_classes", "num_classes", num_classes, 1)
    if num_classes > vocabulary_size or len(stream) < 2:
        raise ValueError(
            f"word_classes: `num_classes` must be at most {vocabulary_size} and "
            f"`tokens` two words at least; found {num_classes} and {len(stream)}."
        )
    counts = scipy.sparse.coo_matrix(
        (np.ones(len(stream) - 1), (stream[:-1], stream[1:])),
        shape=(vocabulary_size, vocabulary_size),
    ).tocsr()
    totals = np.asarray(counts.sum(axis=1)).ravel()
    shares = scipy.sparse.diags(1 / np.maximum(totals, 1)) @ counts
    shares.data = np.sqrt(shares.data)
    rng = np.random.default_rng(seed)
    rank = max(1, min(num_classes, 50, vocabulary_size - 1))
    if vocabulary_size > 2:
        left, values, _ = scipy.sparse.linalg.svds(
            shares, k=rank, v0=rng.random(vocabulary_size)
        )
        points = left * values
    else:
        points = shares.toarray()
    points = points * np.minimum(1.0, np.sqrt(totals / 20))[:, np.newaxis]
    _, labels = scipy.cluster.vq.kmeans2(
        points, num_classes, minit="++", rng=rng, missing="warn"
    )
    return labels.astype(np.int32)
