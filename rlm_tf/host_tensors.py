"""Arrays as tensors that no graph copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf


def host_tensor(array: Any) -> tf.Tensor:
    """Returns an array as a tensor of the host that functions capture.

    `tf.constant` inside the function of a data set makes the array a part of its graph:
    it is copied some times with it, stays as long as it does, and may not take two
    gigabytes.

    Args:
        array: Any NumPy array, or what `tf.constant` takes.
    """
    with tf.init_scope(), tf.device("CPU:0"):
        return tf.constant(array)


def host_array(tensor: tf.Tensor) -> np.ndarray:
    """Returns what a tensor of the host holds, read-only and not copied."""
    return np.asarray(memoryview(tensor))
