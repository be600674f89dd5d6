"""The simple peer of masked language models: n-grams from both sides."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.special

from rlm_tf.checks import check_integer
from rlm_tf.data.text.special_tokens import SpecialIds
from rlm_tf.restricted import KneserNey

_FLOOR = 1e-6
_ROWS = 256


class MaskedScores(NamedTuple):
    """How well masked tokens are predicted.

    Attributes:
        cross_entropy: Nats a token.
        accuracy: Share of tokens that are the most probable.
    """

    cross_entropy: float
    accuracy: float


class TwoSidedNGram:
    """Predicts a token from its neighbours, by a Kneser-Ney model of either direction.

        p(v) ~ p(v | tokens before) p(v | tokens behind) / p(v)

    which is exact where both sides are independent given v.

    Args:
        tokens: Rows of the training text, int `[N, T]`, as those of `Segments`.
        ids: Special tokens; padding is left out.
        vocabulary_size: V.
        order: Of both models.

    Raises:
        ValueError: If a number is out of range.
    """

    def __init__(
        self,
        tokens: npt.ArrayLike,
        ids: SpecialIds,
        vocabulary_size: int,
        *,
        order: int = 3,
    ) -> None:
        check_integer(type(self).__name__, "order", order, 2)
        self.ids = ids
        rows = np.asarray(tokens, np.int32)
        stream = rows[rows != ids.padding]
        self._sides = [
            KneserNey(order).fit(text, vocabulary_size).with_floor(_FLOOR)
            for text in (stream, stream[::-1].copy())
        ]
        counts = np.bincount(stream, minlength=vocabulary_size) + 1.0
        self.unigram = np.log(counts / counts.sum())
        self._width = order - 1

    def log_probs(self, tokens: npt.ArrayLike, places: npt.ArrayLike) -> np.ndarray:
        """Returns log-probabilities `[N, V]` of all tokens at places.

        Args:
            tokens: Rows int `[M, T]`; neighbours are read as they are. One that no text
                has, such as [MASK], ends the context on its side, for contexts with it
                were never seen.
            places: Row and column of each, int `[N, 2]`.
        """
        row, column = np.asarray(places).T
        # What lies beyond a row in the text of the models.
        rows = np.where(tokens == self.ids.padding, self.ids.cls, tokens)
        width = self._width
        rows = np.pad(
            rows,
            [(0, 0), (width, width)],
            constant_values=((0, 0), (self.ids.sep, self.ids.cls)),
        )
        near = np.arange(width) - width
        total = -self.unigram[np.newaxis]
        for side, model in zip((1, -1), self._sides, strict=True):
            columns = column[:, np.newaxis] + width + side * near
            contexts = rows[row[:, np.newaxis], columns]
            if width == 1:
                contexts = contexts[:, 0]
            total = total + np.asarray(model.log_probs(contexts), np.float64)
        return scipy.special.log_softmax(total, axis=1)

    def scores(
        self,
        tokens: npt.ArrayLike,
        places: npt.ArrayLike,
        masked_tokens: npt.ArrayLike | None = None,
    ) -> MaskedScores:
        """Returns how well tokens at places are predicted.

        Args:
            tokens: Rows int `[M, T]`.
            places: Row and column of each, int `[N, 2]`.
            masked_tokens: What a masked language model sees of the rows, int `[M, T]`;
                None: all neighbours are seen.
        """
        rows, places = np.asarray(tokens, np.int32), np.asarray(places)
        read = rows if masked_tokens is None else np.asarray(masked_tokens, np.int32)
        losses, hits = 0.0, 0
        for first in range(0, len(places), _ROWS):
            part = places[first : first + _ROWS]
            found = self.log_probs(read, part)
            targets = rows[part[:, 0], part[:, 1]]
            losses -= found[np.arange(len(part)), targets].sum()
            hits += int((found.argmax(axis=1) == targets).sum())
        return MaskedScores(losses / len(places), hits / len(places))

    def unigram_scores(
        self, tokens: npt.ArrayLike, places: npt.ArrayLike
    ) -> MaskedScores:
        """Returns how well frequency alone predicts tokens at places."""
        row, column = np.asarray(places).T
        targets = np.asarray(tokens)[row, column]
        return MaskedScores(
            float(-self.unigram[targets].mean()),
            float((targets == self.unigram.argmax()).mean()),
        )
