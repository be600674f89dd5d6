"""Pairs of segments of a text with a gap between them, beside windows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_integer, checked_tokens
from rlm_tf.data.batches.text_pairs import TextPairs
from rlm_tf.objectives.raml import Tail


class SegmentPairs(TextPairs):
    """As `SentencePairs`, of segments of equal length instead of sentences.

    X begins anywhere where there is room for the others, Y* begins `gap` tokens behind
    its end, Y- anywhere where it overlaps neither nor what is between them, and Y g
    whole segments behind Y*.

    Args:
        tokens: int `[N]`, the text.
        batch_size: P, pairs of a step.
        segment: L, tokens of a segment.
        gap: Tokens between X and Y*.
        seed: Of the draws.
        negatives: K, segments Y- for each pair.
        rate: Probability that Y is Y* itself, in (0, 1].
        tail: See `SentencePairs`.
        documents: int, positions in `tokens` where documents begin; None: the text is
            one. No segment and no pair crosses from one into another.

    Raises:
        ValueError: If the text has no room for a pair and a Y-, or an argument is out
            of range.
    """

    def __init__(
        self,
        tokens: npt.ArrayLike,
        batch_size: int,
        *,
        segment: int = 40,
        gap: int = 0,
        seed: int = 0,
        negatives: int = 1,
        rate: float = 0.3,
        tail: Tail = "renormalised",
        documents: Sequence[int] | None = None,
    ) -> None:
        super().__init__(batch_size, seed, negatives, rate, tail)
        name = type(self).__name__
        check_integer(name, "segment", segment, 1)
        check_integer(name, "gap", gap, 0)
        self.segment = segment
        self.gap = gap
        stream = checked_tokens(name, tokens, np.iinfo(np.int32).max)
        # Once: in the function of a data set each use would be a copy of it.
        self._tokens = tf.constant(stream, tf.int32)
        bounds = self._document_bounds(documents, len(stream))
        span = 2 * segment + gap
        none = np.zeros(0, np.int64)
        pieces, firsts, most = [none], [none], [none]
        for begin, end in itertools.pairwise(bounds):
            own = np.arange(begin, end - span + 1)
            firsts.append(own)
            most.append((end - own - span) // segment)
            pieces.append(np.arange(begin, end - segment + 1))
        all_pieces, all_firsts = np.concatenate(pieces), np.concatenate(firsts)
        low = np.searchsorted(all_pieces, all_firsts - segment + 1)
        high = np.searchsorted(all_pieces, all_firsts + span)
        # In a short text there may be no room beside X and Y*, wherever these are.
        room = high - low < len(all_pieces)
        if not np.any(room):
            raise ValueError(
                f"SegmentPairs: `tokens` must have room for two segments of {segment} "
                f"with {gap} between them and a third elsewhere, found {len(stream)} "
                "tokens."
            )
        self._set_places(
            pieces=all_pieces,
            firsts=all_firsts[room],
            most=np.concatenate(most)[room],
            near=(low[room], high[room]),
            distance=segment + gap,
            stride=segment,
        )

    def _look_up(self, places: tf.Tensor) -> tf.Tensor:
        index = places[..., tf.newaxis] + tf.range(self.segment)
        return tf.gather(self._tokens, index)
