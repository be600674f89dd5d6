"""What a discriminator makes of pairs that it does not learn from."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.data.batches.text_pairs import TextPairs
from rlm_tf.metrics.mine_bound import MineBound


class HeldOutPairs(keras.callbacks.Callback):
    """Logs the discriminator's scores of held-out pairs, after every epoch.

    `val_mine`, the bound of Eq. (4) of Cao and Xu (2019) in nats, and
    `val_pair_accuracy`, the share of pairs with D+ > D-. Of pairs that are trained on
    both say more than there is. No dropout acts; the same pairs are read each time.
    Stands in front of `MetricsLog` among callbacks.

    Args:
        pairs: `SentencePairs` or `SegmentPairs` of held-out text.
        batches: How many batches of them are read.

    Raises:
        ValueError: If `batches` is not positive; when training begins, if the model has
            no discriminator.
    """

    def __init__(self, pairs: TextPairs, batches: int = 20) -> None:
        super().__init__()
        check_integer("HeldOutPairs", "batches", batches, 1)
        self.pairs = pairs
        self.batches = batches
        self._mine = MineBound()
        self._accuracy = keras.metrics.Mean()
        self._read: Any = None

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        if not hasattr(self.model, "discriminator"):
            raise ValueError(
                "HeldOutPairs: the model must have a discriminator, as "
                "BootstrappedMutualInformation, found "
                f"{type(self.model).__name__}."
            )
        self._read = tf.function(self._scores)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is None:
            return
        for metric in (self._mine, self._accuracy):
            metric.reset_state()
        for step in range(self.batches):
            joint, marginal = self._read(tf.constant(step))
            self._mine.update_state(joint, marginal)
            above = joint[:, tf.newaxis] > marginal
            self._accuracy.update_state(tf.cast(above, tf.float32))
        logs["val_mine"] = float(self._mine.result())
        logs["val_pair_accuracy"] = float(self._accuracy.result())

    def _scores(self, step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns D of neighbours `[P]` and of others `[P, K]`."""
        drawn = self.pairs.draw(0, step)
        number, others = drawn.negatives.shape[:2]
        rows = tf.reshape(drawn.negatives, [number * others, -1])
        pieces = tf.concat([drawn.first, drawn.second, rows], axis=0)
        first, second, rest = tf.split(
            self.model.features(pieces), [number, number, number * others]
        )
        discriminator = self.model.discriminator
        apart = discriminator((tf.repeat(first, others, axis=0), rest))
        joint = discriminator((first, second))
        return joint, tf.reshape(apart, [number, others])
