"""Extended contexts of fine-tuning texts: beginnings that end in the same piece."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.data.batches.context_index import ContextIndex


class DrawnPrefixes(NamedTuple):
    """Extended contexts of N predictions.

    Attributes:
        texts: Texts, int32 `[N * k, T]`.
        places: Row and place of the pieces in them, int32 `[N * k, 2]`.
        known: Whether a piece occurs, bool `[N]`; where it does not, the others mean
            nothing.
        segments: Of the texts, int32 `[N * k, T]`, or None.
    """

    texts: tf.Tensor
    places: tf.Tensor
    known: tf.Tensor
    segments: tf.Tensor | None


class SampledPrefixes:
    """The published contexts of IMM in fine-tuning: k beginnings for each prediction.

    For a prediction behind a piece, k occurrences of that piece in the texts are drawn
    uniformly, with replacement; each with all that is before it in its text is an
    extended context.

    Args:
        tokens: Rows of texts, int `[N, T]`, as those of `LabelledBatches`; no copy of
            them goes into any file.
        k: Extended contexts of a prediction.
        segments: Of rows of two texts, int `[N, T]`.

    Raises:
        ValueError: If `k` is not positive, `tokens` are no rows of ids, or `segments`
            have another shape.
    """

    def __init__(
        self,
        tokens: npt.ArrayLike,
        k: int = 5,
        segments: npt.ArrayLike | None = None,
    ) -> None:
        name = type(self).__name__
        check_integer(name, "k", k, 1)
        rows = np.asarray(tokens)
        if rows.ndim != 2 or not np.issubdtype(rows.dtype, np.integer):
            raise ValueError(
                f"{name}: `tokens` must be integers [N, T], found {rows.dtype} "
                f"{list(rows.shape)}."
            )
        self.k = k
        self.tokens = rows
        self._rows = tf.constant(rows, tf.int32)
        self._segments = None if segments is None else tf.constant(segments, tf.int32)
        if self._segments is not None and self._segments.shape != rows.shape:
            raise ValueError(
                f"{name}: `segments` must have the shape of `tokens`, "
                f"{list(rows.shape)}, found {list(self._segments.shape)}."
            )
        self._index = ContextIndex(rows.ravel(), 1, int(rows.max()) + 1)

    def draw(self, pieces: tf.Tensor, randoms: tf.Tensor) -> DrawnPrefixes:
        """Draws extended contexts.

        Args:
            pieces: int `[N]`, the last piece of each context.
            randoms: int64 `[N, k]`, uniform and not negative.
        """
        found, count = self._index.draw(pieces[:, tf.newaxis], randoms)
        flat = tf.reshape(found, [-1])
        length = self._rows.shape[1]
        of_text = flat // length
        numbers = tf.range(tf.shape(flat)[0])
        return DrawnPrefixes(
            tf.gather(self._rows, of_text),
            tf.stack([numbers, flat % length], axis=1),
            count > 0,
            None if self._segments is None else tf.gather(self._segments, of_text),
        )
