"""Batches of a text that tell where in it their targets are."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rlm_tf.data.batches.contiguous_batches import ContiguousBatches
from rlm_tf.data.batches.variable_windows import VariableWindows


class PlacedBatches:
    """Gives `(((tokens, start), places), next_tokens, weights)`.

    `places`, int32 `[B, T]`, are those of the targets in the text, 0 of padding: what
    was stored of each token of a text is found by them, whatever the windows.

    Used as `ResumableBatches(PlacedBatches(...))` (`rlm_tf.training`).

    Args:
        batches: Of a text.

    Attributes:
        steps: Elements of an epoch.

    Raises:
        ValueError: If the batches do not know places.
    """

    def __init__(self, batches: ContiguousBatches | VariableWindows) -> None:
        if not hasattr(batches, "of_places"):
            raise ValueError(
                f"{type(self).__name__}: `batches` must be ContiguousBatches or "
                f"VariableWindows, found {type(batches).__name__}."
            )
        self.batches = batches
        self.steps = batches.steps
        self._placed = batches.of_places()

    def dataset(self, epoch: Any = 0, start_step: Any = 0) -> tf.data.Dataset:
        """Returns the elements of an epoch.

        Args:
            epoch: Integer scalar.
            start_step: Step of the first element.
        """

        def elements(batches: ContiguousBatches | VariableWindows) -> tf.data.Dataset:
            if isinstance(batches, ContiguousBatches):
                return batches.dataset().skip(start_step)
            return batches.dataset(epoch, start_step)

        pairs = tf.data.Dataset.zip(elements(self.batches), elements(self._placed))
        return pairs.map(
            lambda own, placed: ((own[0], placed[1]), *own[1:]),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
