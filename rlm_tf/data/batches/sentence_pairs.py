"""Pairs of neighbouring sentences beside the windows of a language model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_integer, checked_tokens
from rlm_tf.data.batches.text_pairs import TextPairs
from rlm_tf.objectives.raml import Tail
from rlm_tf.padding import PADDING

_LEAST_SENTENCES = 3


class SentencePairs(TextPairs):
    """Adds sentences X, Y*, Y- and Y of a text to each window, drawn anew each step.

    X is a sentence drawn uniformly among those that another one of their document
    follows, Y* that next one, each Y- one drawn uniformly from all but these two, and
    Y the sentence g places behind Y* in the document, g geometric from 0.

    Used as `ResumableBatches(batches, transform=SentencePairs(...))`
    (`rlm_tf.training`). What is drawn is a function of seed, epoch, step and the pair's
    number, made before replicas share a batch out.

    Args:
        tokens: int `[N]`, the text; sentences end with their end token. Lone end tokens
            are no sentences.
        end_id: Id of the end of a sentence.
        batch_size: P, pairs of a step; any number, most useful a multiple of the rows
            of the window (see `PairBatch`).
        most_tokens: L, tokens of a sentence, end included: of longer ones the first
            L - 1 and the end are kept.
        seed: Of the draws.
        negatives: K, sentences Y- for each pair.
        rate: Probability that Y is Y* itself, in (0, 1].
        tail: What happens to the probability of sentences behind a document's end; see
            `rlm_tf.objectives.raml.geometric_log_probs`. With `"infinite"` draws are
            clipped and their probability is not, as in the authors' code.
        documents: int, the positions in `tokens` where documents begin; None: the text
            is one document. No sentence and no pair crosses from one into another.

    Attributes:
        sentences: int32 `[S, L]`, padded with -1.

    Raises:
        ValueError: If there are fewer than three sentences, no two in one document, or
            an argument is out of range.
    """

    def __init__(
        self,
        tokens: npt.ArrayLike,
        end_id: int,
        batch_size: int,
        *,
        most_tokens: int = 40,
        seed: int = 0,
        negatives: int = 1,
        rate: float = 0.3,
        tail: Tail = "renormalised",
        documents: Sequence[int] | None = None,
    ) -> None:
        super().__init__(batch_size, seed, negatives, rate, tail)
        name = type(self).__name__
        check_integer(name, "most_tokens", most_tokens, 2)
        self.end_id = end_id
        self.most_tokens = most_tokens
        check_integer(name, "end_id", end_id, 0)
        stream = checked_tokens(name, tokens, np.iinfo(np.int32).max)
        bounds = self._document_bounds(documents, len(stream))
        starts, lengths = _sentences(stream, end_id, bounds)
        if len(starts) < _LEAST_SENTENCES:
            raise ValueError(
                f"SentencePairs: `tokens` must have at least {_LEAST_SENTENCES} "
                f"sentences, parted by the token {end_id}; found {len(starts)}."
            )
        self.sentences = _table(stream, starts, lengths, most_tokens, end_id)
        # Once: in the function of a data set each use would be a copy of it.
        self._table = tf.constant(self.sentences)
        document = np.searchsorted(bounds, starts, side="right")
        firsts = np.flatnonzero(document[1:] == document[:-1])
        if not len(firsts):
            raise ValueError(
                "SentencePairs: no document has two sentences; `documents` must be the "
                "positions of their first tokens."
            )
        lasts = np.searchsorted(document, document[firsts], side="right") - 1
        self._set_places(
            pieces=np.arange(len(starts)),
            firsts=firsts,
            most=lasts - firsts - 1,
            near=(firsts, firsts + 2),
            distance=1,
            stride=1,
        )

    def _look_up(self, places: tf.Tensor) -> tf.Tensor:
        return tf.gather(self._table, places)


def _sentences(
    stream: np.ndarray, end_id: int, bounds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns where sentences with a word start, and their words without the end.

    A sentence also ends where its document does.
    """
    if not len(stream):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    ends = np.flatnonzero(stream == end_id)
    starts = np.union1d(bounds[:-1], ends[ends < len(stream) - 1] + 1)
    stops = np.append(starts[1:], len(stream))
    has_end = stream[stops - 1] == end_id
    lengths = stops - starts - has_end
    return starts[lengths > 0], lengths[lengths > 0]


def _table(
    stream: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    most_tokens: int,
    end_id: int,
) -> np.ndarray:
    """Returns the sentences, cut so that the end fits, padded behind it."""
    kept = np.minimum(lengths, most_tokens - 1)[:, np.newaxis]
    places = np.arange(most_tokens)
    index = np.minimum(starts[:, np.newaxis] + places, len(stream) - 1)
    table = np.where(places < kept, stream[index], PADDING)
    return np.where(places == kept, end_id, table).astype(np.int32)
