"""Uniform draws of an example that depend on its key alone, whatever the batch is."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

# Of the generator SplitMix64 (Steele, Lea and Flood 2014).
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
# Bits of a float32 in [0, 1).
_BITS = 24


def keyed_uniforms(keys: tuple[Any, ...], ids: tf.Tensor, length: int) -> tf.Tensor:
    """Returns draws in [0, 1), float32 `[B, length]`.

    Each is a function of the keys, the id of its row and its column.

    Args:
        keys: Integers, such as seed and epoch.
        ids: int `[B]`.
        length: Draws of each.
    """
    state = tf.zeros([], tf.uint64)
    for key in keys:
        state = _mixed(state + tf.cast(key, tf.uint64))
    rows = _mixed(state + tf.cast(ids, tf.uint64))[:, tf.newaxis]
    columns = tf.cast(tf.range(length), tf.uint64)[tf.newaxis]
    bits = tf.bitwise.right_shift(_mixed(rows + columns), _shift(64 - _BITS))
    return tf.cast(bits, tf.float32) * 2.0**-_BITS


def _mixed(state: tf.Tensor) -> tf.Tensor:
    """Returns the output that SplitMix64 has for a state; all bits matter for all."""
    found = state + tf.constant(_STEP, tf.uint64)
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        found = tf.bitwise.bitwise_xor(
            found, tf.bitwise.right_shift(found, _shift(shift))
        )
        found *= tf.constant(factor, tf.uint64)
    return tf.bitwise.bitwise_xor(found, tf.bitwise.right_shift(found, _shift(31)))


def _shift(bits: int) -> tf.Tensor:
    return tf.constant(bits, tf.uint64)
