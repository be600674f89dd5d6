"""What the signatures of an export check before they answer, and its texts to try."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from rlm_tf.data.vocabulary import Vocabulary

MAX_TOKENS = 10_000


class Untracked:
    """Holds a value in a way that TensorFlow's tracking does not look into."""

    def __init__(self, value: Any) -> None:
        self.value = value


def checked(value: tf.Tensor, valid: tf.Tensor, message: str) -> tf.Tensor:
    """Returns the value; running it fails with message and value unless it is valid."""
    with tf.control_dependencies([tf.debugging.Assert(valid, [message, value])]):
        return tf.identity(value)


def checked_max_tokens(function: str, value: tf.Tensor) -> tf.Tensor:
    """Returns the number of words to say, in [0, MAX_TOKENS]."""
    valid = (value >= 0) & (value <= MAX_TOKENS)
    message = f"{function}: max_tokens must be in [0, {MAX_TOKENS}], found"
    return checked(value, valid, message)


def checked_temperature(function: str, value: tf.Tensor) -> tf.Tensor:
    """Returns the temperature, finite and not negative."""
    valid = (value >= 0) & tf.math.is_finite(value)
    return checked(
        value, valid, f"{function}: temperature must be >= 0 and finite, found"
    )


def checked_share(function: str, name: str, value: tf.Tensor) -> tf.Tensor:
    """Returns a number in [0, 1]."""
    valid = (value >= 0) & (value <= 1)
    return checked(value, valid, f"{function}: {name} must be in [0, 1], found")


def checked_latents(
    function: str, latents: tf.Tensor, shape: tuple[int, ...]
) -> tf.Tensor:
    """Returns latents, finite and of this shape behind their first axis."""
    found = tf.shape(latents)[1:]
    # Shapes of another length must not be compared entry by entry.
    rank = len(shape)
    first = tf.pad(found, [[0, rank]], constant_values=-1)[:rank]
    same = tf.reduce_all(tf.equal(first, list(shape))) & tf.equal(tf.size(found), rank)
    expected = ", ".join(map(str, ("N", *shape)))
    message = f"{function}: latents must have shape [{expected}], found"
    check = tf.debugging.Assert(same, [message, tf.shape(latents)])
    with tf.control_dependencies([check]):
        latents = tf.ensure_shape(tf.identity(latents), [None, *shape])
    finite = tf.reduce_all(tf.math.is_finite(latents))
    return checked(latents, finite, f"{function}: latents must be finite, found")


def readable_tokens(vocabulary: Vocabulary, most: int = 1000) -> np.ndarray:
    """Returns tokens that are read back as they are written: int64 `[N]`.

    `most` of the vocabulary, at random, are tried.
    """
    some = np.random.default_rng(0).permutation(len(vocabulary))[:most]
    kept = [i for i in some if list(vocabulary.encode(vocabulary.decode([i]))) == [i]]
    return np.array(kept, np.int64)
