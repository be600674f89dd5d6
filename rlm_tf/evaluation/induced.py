"""Perplexity of the restricted model that a language model induces (Table 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, checked_tokens
from rlm_tf.data.batches.contiguous_batches import MOST_IDS
from rlm_tf.evaluation.window_stream import WindowReader
from rlm_tf.models.language.interface import interface_of
from rlm_tf.numerics import perplexity


class InducedPerplexity(NamedTuple):
    """How well the induced model predicts one text.

    Attributes:
        nats_per_token: Mean negative log-likelihood; not a number if nothing is scored.
        perplexity: Its exponential.
        num_tokens: Number of tokens scored.
        num_left_out: Number of tokens whose short context the training text lacks.
    """

    nats_per_token: float
    perplexity: float
    num_tokens: int
    num_left_out: int


def induced_perplexity(
    model: keras.Model,
    train_tokens: np.ndarray,
    texts: Mapping[str, np.ndarray],
    batch_size: int,
    window: int,
    *,
    prefix: int,
    context_length: int = 1,
    progress: str | None = None,
) -> dict[str, InducedPerplexity]:
    """Evaluates the induced model `Q_hat(y | s) = mean_t Q(y | x_1 .. x_t)`.

    The mean is over *all* positions t of the training text, in the order in which it
    is read, whose last `context_length` words are the short context s (the full
    enumeration of the caption of Table 1). One pass over the training text, with states
    carried from window to window and without dropout, serves all texts; it adds up
    only the pairs (short context, next word) that occur in them.

    A text's first `context_length` tokens have no whole short context and are not
    scored: the rest are the pairs that `RestrictedModel.score` scores. Tokens whose
    short context never occurs in the training text are left out and counted.

    Args:
        model: A recurrent language model, a wrapper around one, or any Keras
            model from tokens to logits; the last sees its own window only.
        train_tokens: Integers `[N]`.
        texts: Name -> integers `[M]`; the training text itself may be among them.
        batch_size: Rows in which the training text is read, see `target_log_probs`.
        window: Tokens of a row read at once.
        prefix: The token before the first, `<eos>` as a rule. It belongs to the
            training text's contexts.
        context_length: Words of short context.
        progress: Label of a progress bar, or None for no bar.

    Returns:
        Name -> result.

    Raises:
        ValueError: If `context_length` is not positive, the training text is empty or
            not a vector of integers, or a text has tokens that the model lacks.
    """
    function = "induced_perplexity"
    check_integer(function, "context_length", context_length, 1)
    check_integer(function, "prefix", prefix, 0)
    if not isinstance(texts, Mapping):
        raise ValueError(
            f"{function}: `texts` must map names to token ids, found "
            f"{type(texts).__name__}."
        )
    size = interface_of(model).vocabulary_size or MOST_IDS
    train_tokens = checked_tokens(function, train_tokens, size, "train_tokens")
    texts = {
        name: checked_tokens(function, tokens, size, f"texts[{name!r}]")
        for name, tokens in texts.items()
    }
    read = np.concatenate([[prefix], train_tokens[:-1]]).astype(np.int64)
    streams = [read, *texts.values()]
    train_contexts, *text_contexts = _dense_contexts(streams, context_length)
    # Position t of the stream reads the context that ends there; the first few none.
    context_at = np.concatenate(
        [np.full(min(context_length - 1, len(read)), -1), train_contexts]
    )
    num_train_contexts = int(context_at.max(initial=-1)) + 1

    next_words = [tokens[context_length:] for tokens in texts.values()]
    text_contexts = [contexts[:-1] for contexts in text_contexts]
    pairs = _Pairs(text_contexts, next_words, num_train_contexts)
    sums = np.zeros(len(pairs.words), np.float64)
    reader = WindowReader(
        model,
        batch_size,
        window,
        prefix=prefix,
        head=lambda logits, _: (logits, tf.reduce_logsumexp(logits, axis=-1)),
    )
    for output in reader.windows(train_tokens, progress=progress):
        logits, log_normalizer = output.outputs
        pairs.add(
            sums,
            context_at[output.positions[output.valid]],
            logits.reshape(-1, logits.shape[-1]),
            log_normalizer.ravel(),
            np.flatnonzero(output.valid),
        )
    occurrences = np.bincount(train_contexts, minlength=num_train_contexts)
    means = sums / np.repeat(occurrences, pairs.counts)
    return {
        name: _summary(means, pairs.index_of(contexts, words))
        for name, contexts, words in zip(texts, text_contexts, next_words, strict=True)
    }


class _Pairs:
    """The pairs (short context, next word) to be added up, by context (CSR).

    Args:
        contexts: Numbers of short contexts, one array per text.
        words: The words that follow them.
        num_contexts: Contexts from this number on are not in the training text.
    """

    def __init__(
        self, contexts: list[np.ndarray], words: list[np.ndarray], num_contexts: int
    ) -> None:
        self._base = 1 + max((int(w.max(initial=0)) for w in words), default=0)
        self._num_contexts = num_contexts
        keys = [self._keys(c, w) for c, w in zip(contexts, words, strict=True)]
        self._unique = np.unique(np.concatenate([np.zeros(0, np.int64), *keys]))
        self._unique = self._unique[self._unique < num_contexts * self._base]
        self.words = self._unique % self._base
        self.counts = np.bincount(self._unique // self._base, minlength=num_contexts)
        self._starts = np.concatenate([[0], np.cumsum(self.counts)])

    def _keys(self, contexts: np.ndarray, words: np.ndarray) -> np.ndarray:
        return contexts * self._base + words

    def index_of(self, contexts: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Returns the number of each pair, -1 where the context is not in training."""
        index = np.searchsorted(self._unique, self._keys(contexts, words))
        return np.where(contexts < self._num_contexts, index, -1)

    def add(
        self,
        sums: np.ndarray,
        contexts: np.ndarray,
        logits: np.ndarray,
        log_normalizer: np.ndarray,
        rows: np.ndarray,
    ) -> None:
        """Adds the probabilities of the wanted next words at some positions.

        Args:
            sums: float64, one entry per pair; changed in place.
            contexts: Context number of each position `[P]`; -1: none.
            logits: `[R, V]`.
            log_normalizer: Log of the sum of their exponentials, `[R]`.
            rows: Row of the logits of each position `[P]`.
        """
        largest = int(self.words.max(initial=0))
        if largest >= logits.shape[-1]:
            raise ValueError(
                f"induced_perplexity: the texts contain the token {largest}, but the "
                f"model predicts tokens in [0, {logits.shape[-1]})."
            )
        present = contexts >= 0
        contexts, rows = contexts[present], rows[present]
        counts = self.counts[contexts]
        row = np.repeat(rows, counts)
        # The wanted pairs of a position stand in a row, from its context's start on.
        first = np.repeat(self._starts[contexts] - np.cumsum(counts) + counts, counts)
        pair = first + np.arange(len(row))
        log_probs = logits[row, self.words[pair]] - log_normalizer[row]
        np.add.at(sums, pair, np.exp(log_probs, dtype=np.float64))


def _dense_contexts(streams: list[np.ndarray], context_length: int) -> list[np.ndarray]:
    """Numbers the short contexts that end at each position of each stream.

    Args:
        streams: Integers `[N_i]`; contexts do not reach from one into the next.
        context_length: Words of a context.

    Returns:
        int64 `[max(N_i - context_length + 1, 0)]` each. Contexts of the first stream
        have the lowest numbers, and every number is used.
    """
    windows = np.concatenate(
        [_windows(stream, context_length) for stream in streams], axis=0
    )
    numbers = np.zeros(len(windows), np.int64)
    for column in windows.T:
        # Word by word, so that the numbers stay small whatever the length.
        keys = numbers * (int(column.max(initial=0)) + 1) + column
        numbers = np.unique(keys, return_inverse=True)[1]
    lengths = [max(len(stream) - context_length + 1, 0) for stream in streams]
    in_first = np.zeros(int(numbers.max(initial=-1)) + 1, bool)
    in_first[numbers[: lengths[0]]] = True
    order = np.empty(len(in_first), np.int64)
    order[np.argsort(~in_first, kind="stable")] = np.arange(len(in_first))
    return np.split(order[numbers], np.cumsum(lengths)[:-1])


def _windows(stream: np.ndarray, length: int) -> np.ndarray:
    if len(stream) < length:
        return np.zeros((0, length), np.int64)
    return np.lib.stride_tricks.sliding_window_view(stream, length)


def _summary(means: np.ndarray, index: np.ndarray) -> InducedPerplexity:
    scored = index >= 0
    with np.errstate(divide="ignore"):
        log_probs = np.log(means[index[scored]])
    nats = -float(log_probs.mean()) if scored.any() else float("nan")
    left_out = int(np.count_nonzero(~scored))
    return InducedPerplexity(
        nats, perplexity(nats), int(np.count_nonzero(scored)), left_out
    )
