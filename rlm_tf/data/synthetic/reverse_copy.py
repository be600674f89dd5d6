"""The reverse copy task: a sequence of random tokens, to be said backwards."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rlm_tf.checks import check_integer

_SPLITS = ("train", "valid", "test")


class ReverseCopy:
    """Examples of the reverse copy task (Melis et al. 2020, section 4.3).

    An example is n tokens drawn uniformly from V. The encoder reads them and `<eos>`;
    the decoder reads the marker and then, as it goes, the tokens in reverse order,
    which it has to predict, and `<eos>` after them. A batch is a function of the seed,
    the split, its size and its step, so the same examples come again in every epoch and
    on every machine.

    Args:
        length: n.
        num_tokens: V, the tokens that are drawn, ids 0 to V - 1.
        seed: Of the draws.

    Attributes:
        marker: Id of the marker, V.
        eos: Id of `<eos>`, V + 1.
        vocabulary_size: V + 2.

    Raises:
        ValueError: If an argument is out of range.
    """

    def __init__(self, length: int, num_tokens: int = 1000, seed: int = 0) -> None:
        check_integer("ReverseCopy", "length", length, 1)
        check_integer("ReverseCopy", "num_tokens", num_tokens, 1)
        self.length = length
        self.num_tokens = num_tokens
        self.seed = seed
        self.marker = num_tokens
        self.eos = num_tokens + 1
        self.vocabulary_size = num_tokens + 2

    def dataset(
        self, split: str, num_examples: int, batch_size: int, start_step: Any = 0
    ) -> tf.data.Dataset:
        """Returns batches `((source, decoder_inputs), targets)`.

        Args:
            split: train, valid or test; no two share draws.
            num_examples: Number of examples; what does not fill a batch is left out.
            batch_size: B.
            start_step: Step of the first batch.

        Returns:
            `source`, `decoder_inputs` and `targets` are int32 `[B, n + 1]`.

        Raises:
            ValueError: If the split is unknown or there is no whole batch.
        """
        if split not in _SPLITS:
            raise ValueError(
                f"ReverseCopy: `split` must be one of {', '.join(_SPLITS)}; found "
                f"{split!r}."
            )
        check_integer("ReverseCopy", "batch_size", batch_size, 1)
        check_integer("ReverseCopy", "num_examples", num_examples, batch_size)
        offset = _SPLITS.index(split)

        def batch(step: tf.Tensor) -> Any:
            # A large odd number keeps the splits of neighbouring seeds apart.
            seed = tf.stack(
                [tf.constant(self.seed * 0x9E3779B1 + offset, tf.int64), step]
            )
            tokens = tf.random.stateless_uniform(
                [batch_size, self.length], seed, 0, self.num_tokens, tf.int32
            )
            eos = tf.fill([batch_size, 1], self.eos)
            targets = tf.concat([tf.reverse(tokens, [1]), eos], axis=1)
            marker = tf.fill([batch_size, 1], self.marker)
            inputs = tf.concat([marker, targets[:, :-1]], axis=1)
            return (tf.concat([tokens, eos], axis=1), inputs), targets

        steps = tf.data.Dataset.range(start_step, num_examples // batch_size)
        return steps.map(
            batch, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
        ).prefetch(tf.data.AUTOTUNE)
