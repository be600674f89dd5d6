"""Documents most of whose words a masked language model has replaced."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_integer, check_range
from rlm_tf.data.text.special_tokens import FIRST_IDS
from rlm_tf.labelling.deletion import deletion_counts
from rlm_tf.layers.text.deletion import random_choice
from rlm_tf.layers.text.keyed_draws import keyed_uniforms
from rlm_tf.models.encoders.masked_language_model import MaskedLanguageModel


def replace_words(
    model: MaskedLanguageModel,
    tokens: npt.ArrayLike,
    *,
    ratio: float = 0.9,
    batch_size: int = 64,
    seed: int = 0,
) -> np.ndarray:
    """Returns documents whose masked pieces are what a model holds for likeliest.

    MLM-replace of Dong (2025, section 3.4): a share of the pieces is masked, all at
    once, and each replaced by the likeliest one. A probe that learns from it sees other
    words than those that labelled the documents: give it to `SeedSupervision.fit` as
    `probe_tokens`.

    Args:
        model: Of an encoder whose first tokens are special (`encoder_vocabulary`).
        tokens: int `[N, T]`, `TextReader.rows`.
        ratio: Share of the pieces that is masked, as `deletion_counts` has it; one
            stays at least.
        batch_size: Documents at once.
        seed: Of the draws, which depend on it and the document's place alone.

    Returns:
        int32 `[N, T]`.

    Raises:
        ValueError: If a number is out of range, or `tokens` is not `[N, T]`.
    """
    name = "replace_words"
    check_range(name, 0.0, 1.0, ratio=ratio)
    check_integer(name, "batch_size", batch_size, 1)
    check_integer(name, "seed", seed, 0)
    rows = np.asarray(tokens, np.int32)
    if rows.ndim != 2:
        raise ValueError(f"{name}: `tokens` must be [N, T], found {list(rows.shape)}.")
    length = rows.shape[1]
    table = tf.constant(deletion_counts(np.arange(length + 1), ratio), tf.int32)

    @tf.function(reduce_retracing=True)
    def replaced(batch: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
        special = tf.reduce_any(batch[..., tf.newaxis] == [*FIRST_IDS], axis=-1)
        numbers = tf.reduce_sum(tf.cast(~special, tf.int32), axis=1)
        uniforms = keyed_uniforms((seed,), ids, length)
        masked = random_choice(uniforms, ~special, tf.gather(table, numbers))
        logits = model(tf.where(masked, FIRST_IDS.mask, batch), training=False)
        # A special token is no word.
        never = tf.one_hot(
            [*FIRST_IDS], logits.shape[-1], on_value=True, off_value=False
        )
        banned = tf.reduce_any(never, axis=0)
        likeliest = tf.argmax(
            tf.where(banned, logits.dtype.min, logits), axis=-1, output_type=tf.int32
        )
        return tf.where(masked, likeliest, batch)

    found = [
        replaced(
            tf.constant(rows[first : first + batch_size]),
            tf.range(first, min(first + batch_size, len(rows))),
        ).numpy()
        for first in range(0, len(rows), batch_size)
    ]
    return np.concatenate(found) if found else rows
