"""The protocol of restricted models: the next word's distribution given few words."""

from __future__ import annotations

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import checked_tokens
from rlm_tf.restricted.sparse_probs import SparseProbs
from rlm_tf.typing import TensorLike

_SCORE_BATCH = 256


class RestrictedModel(keras.layers.Layer):
    """A model of `P(next word | short context)` over a fixed vocabulary.

    Subclasses set `context_length` (words of short context: 1 for a bigram model) and
    `vocabulary_size`, and implement `log_probs`. Calling the layer is `log_probs`. No
    gradient flows out of a restricted model.
    """

    context_length: int
    vocabulary_size: int | None

    # === Distributions ===

    def log_probs(self, short_contexts: TensorLike) -> tf.Tensor:
        """Returns natural log-probabilities of every next word.

        Args:
            short_contexts: Integer ids `[N]` if `context_length` is 1, else
                `[N, context_length]`, oldest word first.

        Returns:
            float32 `[N, V]`; minus infinity where the probability is zero.

        Raises:
            ValueError: If the shape or dtype is wrong or, outside of graphs, if an id
                is not in `[0, V)`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `log_probs`.")

    def coarse(self, words: tf.Tensor) -> tf.Tensor:
        """Returns what the model sees of the words of a short context.

        Words that it cannot tell apart get one number: contexts that are equal in it
        share one induced model. These are the words themselves unless a subclass sees
        less, such as their classes.

        Args:
            words: int `[...]`, in [0, V).

        Returns:
            int `[...]`, in [0, V).
        """
        return words

    def probs(self, short_contexts: TensorLike) -> tf.Tensor:
        """Returns probabilities, float32 `[N, V]`; zeros are exact. See `log_probs`."""
        return tf.exp(self.log_probs(short_contexts))

    def has_sparse_probs(self) -> bool:
        """Whether there is `sparse_probs`; outside of graphs."""
        return False

    def sparse_probs(
        self, short_contexts: TensorLike, *, long_rows: int = 0
    ) -> SparseProbs:
        """Returns `probs(short_contexts)` as few words beside distributions of all.

        Args:
            short_contexts: As in `log_probs`.
            long_rows: How many contexts, those that most words follow, may have a
                distribution of their own in place of entries: cheaper where many
                positions share them.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `sparse_probs`.")

    def call(self, short_contexts: TensorLike) -> tf.Tensor:
        """Returns `log_probs(short_contexts)`."""
        return self.log_probs(short_contexts)

    # === Scoring ===

    def score(self, tokens: npt.ArrayLike) -> np.ndarray:
        """Returns the natural log-probability of each token that has a full context.

        Args:
            tokens: Integer ids `[T]` of one stream.

        Returns:
            float64 `[max(T - context_length, 0)]`.

        Raises:
            ValueError: If `tokens` is not a vector of ids in `[0, V)`.
        """
        length = self.context_length
        stream = checked_tokens("score", tokens, self._known_vocabulary_size())
        result = np.empty(max(len(stream) - length, 0), np.float64)
        for first in range(0, len(result), _SCORE_BATCH):
            last = min(first + _SCORE_BATCH, len(result))
            targets = stream[first + length : last + length]
            rows = self.log_probs(contexts_of(stream, length)[first:last])
            picked = tf.gather(rows, tf.constant(targets), batch_dims=1)
            result[first:last] = picked.numpy()
        return result

    # === Checks ===

    def _known_vocabulary_size(self) -> int:
        if self.vocabulary_size is None:
            raise ValueError(
                f"{type(self).__name__} has no tables yet: call `fit` or load it first."
            )
        return self.vocabulary_size

    @property
    def _num_ids(self) -> int:
        """Ids of short contexts are below this: words, unless a subclass differs."""
        return self._known_vocabulary_size()

    def _context_matrix(self, short_contexts: TensorLike) -> tf.Tensor:
        """Checks short contexts and returns them as int64 `[N, context_length]`."""
        name, length = type(self).__name__, self.context_length
        size = self._num_ids
        contexts = tf.convert_to_tensor(short_contexts)
        if not contexts.dtype.is_integer:
            raise ValueError(
                f"{name}: short contexts must be integer ids, found dtype "
                f"{contexts.dtype.name}."
            )
        expected = f"[N, {length}]" + (" or [N]" if length == 1 else "")
        if contexts.shape.rank == 1 and length == 1:
            contexts = contexts[:, tf.newaxis]
        if contexts.shape.rank != 2 or contexts.shape[1] not in (None, length):
            raise ValueError(
                f"{name}: short contexts must have shape {expected}, found "
                f"{contexts.shape}."
            )
        contexts = tf.cast(tf.ensure_shape(contexts, [None, length]), tf.int64)
        if tf.executing_eagerly() and bool(
            tf.reduce_any((contexts < 0) | (contexts >= size))
        ):
            raise ValueError(
                f"{name}: short contexts must be ids in [0, {size}), found "
                f"{int(tf.reduce_min(contexts))}..{int(tf.reduce_max(contexts))}."
            )
        return contexts


def contexts_of(tokens: np.ndarray, context_length: int) -> np.ndarray:
    """Returns the short context of every token that has a full one.

    Args:
        tokens: Ids `[T]`.
        context_length: Words of short context L.

    Returns:
        `[max(T - L, 0), L]`, oldest word first, a read-only view.
    """
    if len(tokens) <= context_length:
        return np.zeros((0, context_length), tokens.dtype)
    if context_length == 0:
        return np.zeros((len(tokens), 0), tokens.dtype)
    return np.lib.stride_tricks.sliding_window_view(tokens[:-1], context_length)
