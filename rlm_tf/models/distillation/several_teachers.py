"""What several teachers say of the same examples."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from rlm_tf.numerics import at_least_single


def stacked_log_probs(name: str, logits: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns log-probabilities `[teachers, ..., K]`.

    Args:
        name: Of whom they teach; a message begins with it.
        logits: `[..., K]` of each teacher.

    Raises:
        ValueError: If they have unlike numbers of classes.
    """
    sizes = [each.shape[-1] for each in logits]
    for number, size in enumerate(sizes, start=1):
        if size != sizes[0]:
            raise ValueError(
                f"{name}: teachers must have the same classes; expected {sizes[0]}, as "
                f"the first has, found {size} of teacher {number}."
            )
    return tf.stack([tf.nn.log_softmax(at_least_single(each)) for each in logits])
