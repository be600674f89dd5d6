"""The batches that encoders are pre-trained on."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from rlm_tf.checks import check_running, check_shapes, checked_ids, known_ids


class Places(NamedTuple):
    """Where masked tokens are.

    Attributes:
        indices: Row and column of each, int `[N, 2]`.
        weights: float32 `[N]`, 0 for what only fills rows up, else 1.
    """

    indices: tf.Tensor
    weights: tf.Tensor


class MaskedBatch(NamedTuple):
    """What `Masking` makes of a batch.

    Attributes:
        tokens: int `[B, T]`, the right ones.
        shown: int `[B, T]`, some of them masked.
        positions: int or bool `[B, T]`, not 0 where masked.
        segments: int `[B, T]`, the text that a token is of, or None.
    """

    tokens: tf.Tensor
    shown: tf.Tensor
    positions: tf.Tensor
    segments: tf.Tensor | None = None

    def places(self, most: int | None) -> Places:
        """Returns where masked tokens are.

        Args:
            most: Of a row, for shapes that do not depend on the batch, as XLA needs
                them; None: as many as there are.
        """
        masked = tf.cast(self.positions, tf.bool)
        if most is None:
            found = tf.where(masked)
            return Places(found, tf.ones_like(found[:, 0], tf.float32))
        count = tf.reduce_max(tf.reduce_sum(tf.cast(masked, tf.int32), axis=1))
        fits = check_running(
            count <= most,
            f"`max_positions` is less than a row has masked tokens. It is {most}",
            count,
        )
        with tf.control_dependencies(fits):
            weights, columns = tf.math.top_k(tf.cast(masked, tf.int32), most)
        rows = tf.repeat(tf.range(tf.shape(columns)[0])[:, tf.newaxis], most, axis=1)
        both = tf.stack([rows, columns], axis=-1)
        return Places(
            tf.reshape(both, [-1, 2]), tf.reshape(tf.cast(weights, tf.float32), [-1])
        )


def masked_batch(name: str, x: Any, y: Any, vocabulary_size: int) -> MaskedBatch:
    """Returns a batch whose ids are those of a vocabulary.

    Args:
        name: Of the model, for messages.
        x: `(tokens, masked tokens, positions)`, perhaps segments behind them.
        y: Must be None.
        vocabulary_size: Ids must be below it.

    Raises:
        ValueError: If it is another batch.
    """
    if not isinstance(x, tuple | list) or len(x) not in (3, 4) or y is not None:
        raise ValueError(
            f"{name}: expected batches `((tokens, masked_tokens, positions),)`, perhaps"
            " with segments behind, as `Masking` makes them, and no targets beside."
        )
    batch = MaskedBatch(*x)
    parts = {
        field: (checked_ids(name, field, value), "B T")
        for field, value in zip(batch._fields, x, strict=False)
        if field != "positions"
    }
    check_shapes(name, **parts, positions=(batch.positions, "B T"))
    remedy = "Encode the text with the vocabulary of the encoder"
    return batch._replace(
        tokens=known_ids(name, vocabulary_size, "tokens", batch.tokens, remedy=remedy),
        shown=known_ids(name, vocabulary_size, "shown", batch.shown, remedy=remedy),
    )


def check_jit(name: str, jit_compile: Any, max_positions: int | None) -> None:
    """Raises ValueError if XLA would have to compile each batch anew."""
    if jit_compile is True and max_positions is None:
        raise ValueError(
            f"{name}: `jit_compile=True` needs `max_positions`, the most masked tokens "
            "of a row: their number must not depend on the batch."
        )
