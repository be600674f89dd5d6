"""How well a masked language model knows a text: pseudo-perplexity."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.data.text.special_tokens import SpecialIds
from rlm_tf.models import MaskedLanguageModel
from rlm_tf.objectives.replaced_tokens import generator_loss


def pseudo_perplexity(
    model: MaskedLanguageModel,
    tokens: npt.ArrayLike,
    ids: SpecialIds,
    *,
    segments: npt.ArrayLike | None = None,
    batch_size: int = 64,
) -> float:
    """Returns exp of the mean cross-entropy of tokens, each masked alone.

    It is no perplexity: each token is predicted from those behind it, too (Salazar et
    al. 2020, arXiv 1910.14659).

    Args:
        model: The model.
        tokens: Rows of text, int `[N, T]`, as those of `Segments`.
        ids: Special tokens, which do not count.
        segments: int `[N, T]`, of which text each token is; None: there is one.
        batch_size: Rows that are read at once, one for each token.

    Raises:
        ValueError: If no token counts.
    """
    check_integer("pseudo_perplexity", "batch_size", batch_size, 1)
    rows = np.asarray(tokens, np.int32)
    counts = ~np.isin(rows, (ids.padding, ids.cls, ids.sep))
    of = None if segments is None else np.asarray(segments, np.int32)
    places = np.argwhere(counts)
    if not len(places):
        raise ValueError("pseudo_perplexity: `tokens` have none that counts.")

    @tf.function(reduce_retracing=True)
    def losses(
        shown: tf.Tensor,
        columns: tf.Tensor,
        targets: tf.Tensor,
        segments: tf.Tensor | None,
    ) -> tf.Tensor:
        where = tf.stack([tf.range(tf.shape(shown)[0]), columns], axis=1)
        logits = model.logits_at(shown, where, segments)
        return generator_loss(logits, targets, tf.ones_like(targets)).loss

    total = 0.0
    for first in range(0, len(places), batch_size):
        row, column = places[first : first + batch_size].T
        shown = rows[row]
        targets = shown[np.arange(len(row)), column]
        shown[np.arange(len(row)), column] = ids.mask
        found = losses(
            tf.constant(shown),
            tf.constant(column.astype(np.int32)),
            tf.constant(targets),
            None if of is None else tf.constant(of[row]),
        )
        total += float(tf.reduce_sum(tf.cast(found, tf.float64)))
    return float(np.exp(total / len(places)))
