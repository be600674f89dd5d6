"""What a causal block keeps of the tokens before its input."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


class Cache(NamedTuple):
    """Keys and values of the last tokens of each row, before any position is applied.

    Attributes:
        keys: `[B, C, D]`, the newest last.
        values: `[B, C, D]`.
        present: `[B, C]`, 1 where there is a token, else 0.
    """

    keys: tf.Tensor
    values: tf.Tensor
    present: tf.Tensor
