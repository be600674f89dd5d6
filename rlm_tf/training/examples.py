"""Training examples, known again by their numbers."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rlm_tf.checks import check_running, check_shapes, checked_ids


def checked_examples(name: str, ids: Any, number: int) -> tf.Tensor:
    """Returns the ids of examples, int64 `[B]`.

    Args:
        name: Begins the messages.
        ids: Int `[B]`, in [0, N).
        number: N.

    Raises:
        ValueError: If ids are no vector of integers, or out of range (in a graph an
            InvalidArgumentError).
    """
    ids = tf.cast(checked_ids(name, "ids", ids), tf.int64)
    check_shapes(name, ids=(ids, "B"))
    wrong = (ids < 0) | (ids >= number)
    worst = tf.reduce_max(tf.where(wrong, ids, tf.cast(-(2**62), tf.int64)))
    checks = check_running(
        ~tf.reduce_any(wrong), f"{name}: `ids` must lie in [0, {number})", worst
    )
    with tf.control_dependencies(checks):
        return tf.identity(ids)
