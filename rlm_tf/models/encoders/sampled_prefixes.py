"""Extended contexts of fine-tuning texts: beginnings that end in the same piece."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.data.batches.context_index import ContextIndex


class SampledPrefixes:
    """The published contexts of IMM in fine-tuning: k beginnings for each prediction.

    For a prediction behind a piece, k occurrences of that piece in the texts are drawn
    uniformly, with replacement; each with all that is before it in its text is an
    extended context.

    Args:
        tokens: Rows of texts, int `[N, T]`, as those of `LabelledBatches`; no copy of
            them goes into any file.
        k: Extended contexts of a prediction.

    Raises:
        ValueError: If `k` is not positive, or `tokens` are no rows of ids.
    """

    def __init__(self, tokens: npt.ArrayLike, k: int = 5) -> None:
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
        self._index = ContextIndex(rows.ravel(), 1, int(rows.max()) + 1)

    def draw(
        self, pieces: tf.Tensor, randoms: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Draws extended contexts.

        Args:
            pieces: int `[N]`, the last piece of each context.
            randoms: int64 `[N, k]`, uniform and not negative.

        Returns:
            Texts int32 `[N * k, T]`, the places of the pieces in them, int32 `[N * k,
            2]`, and whether a piece occurs, bool `[N]`; where it does not, the others
            mean nothing.
        """
        found, count = self._index.draw(pieces[:, tf.newaxis], randoms)
        flat = tf.reshape(found, [-1])
        length = self._rows.shape[1]
        texts = tf.gather(self._rows, flat // length)
        numbers = tf.range(tf.shape(flat)[0])
        return texts, tf.stack([numbers, flat % length], axis=1), count > 0
