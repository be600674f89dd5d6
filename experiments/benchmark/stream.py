"""Text with the statistics of natural language, for everything that looks at words."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.data import contiguous_batches, load_corpus


class Stream(NamedTuple):
    """A training text.

    Attributes:
        name: Of the corpus.
        tokens: int32 `[N]`, below `vocabulary_size`; smaller ids are more frequent.
        vocabulary_size: V of the models, which may exceed the words that occur.
    """

    name: str
    tokens: np.ndarray
    vocabulary_size: int


@functools.cache
def corpus_name(data_dir: str) -> str:
    """Returns the name of the corpus that is there: Penn Treebank, or the embedded."""
    try:
        return load_corpus("ptb", data_dir or None).name
    except FileNotFoundError:
        return load_corpus().name


def training_stream(data_dir: str, vocabulary_size: int) -> Stream:
    """Returns Penn Treebank where its files are found, else the embedded corpus.

    The most frequent words get the smallest ids; whatever does not fit into the
    vocabulary becomes its last word.
    """
    corpus = load_corpus(corpus_name(data_dir), data_dir or None)
    counts = np.bincount(corpus.train)
    rank = np.empty_like(counts)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    tokens = np.minimum(rank[corpus.train], vocabulary_size - 1).astype(np.int32)
    return Stream(corpus.name, tokens, vocabulary_size)


def windows(stream: Stream, batch_size: int, window: int, count: int) -> list[Any]:
    """Returns the first batches of a pass, `((tokens, start), targets, weights)`."""
    batches = contiguous_batches(stream.tokens, batch_size, window, prefix=0)
    return [
        tf.nest.map_structure(tf.constant, _plain(batches.element(step)))
        for step in range(min(count, batches.steps))
    ]


def _plain(element: Any) -> tuple[Any, ...]:
    """`tf.function` takes NamedTuples for another structure than `fit()` gives."""
    return tuple(element)
