"""What the signatures of an export check before they answer, and its texts to try."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from rlm_tf.data.text.tokenisation import SUBWORD_RULES
from rlm_tf.data.text.vocabulary import Vocabulary

MAX_TOKENS = 10_000
"""How many tokens an export generates at most."""

# A step of the smallest model costs 25 microseconds a token.
MAX_TEXT_BYTES = 1_000_000
"""The longest text that an export takes."""

MAX_TEXT_TOKENS = 100_000
"""How many tokens a text that an export takes may have."""


def checked(value: tf.Tensor, valid: tf.Tensor, message: str) -> tf.Tensor:
    """Returns the value; running it fails with message and value unless it is valid."""
    with tf.control_dependencies([tf.debugging.Assert(valid, [message, value])]):
        return tf.identity(value)


def checked_shape(
    function: str, name: str, value: tf.Tensor, shape: tuple[int | None, ...]
) -> tf.Tensor:
    """Returns the value; running it fails unless it has this shape (None: any size).

    TensorFlow holds a caller to the dtypes that a signature declares, not to its shapes
    (nor does TensorFlow Serving), and folds what it takes to be known of them: a shape
    must be read from where it cannot look.
    """
    hidden = tf.io.parse_tensor(tf.io.serialize_tensor(value), value.dtype)
    found = tf.shape(hidden)
    rank = len(shape)
    # Shapes of another length must not be compared entry by entry.
    first = tf.pad(found, [[0, rank]], constant_values=-1)[:rank]
    fixed = [-1 if size is None else size for size in shape]
    same = tf.equal(first, tf.constant(fixed, tf.int32, [rank]))
    same |= tf.constant([size is None for size in shape], tf.bool, [rank])
    valid = tf.reduce_all(same) & tf.equal(tf.size(found), rank)
    sizes = ", ".join("N" if size is None else str(size) for size in shape)
    expected = f"have shape [{sizes}], found" if shape else "be a scalar, found shape"
    check = tf.debugging.Assert(valid, [f"{function}: {name} must {expected}", found])
    with tf.control_dependencies([check]):
        return tf.ensure_shape(tf.identity(value), shape)


def checked_scalar(function: str, name: str, value: tf.Tensor) -> tf.Tensor:
    """Returns one number."""
    return checked_shape(function, name, value, ())


def checked_number(
    function: str, name: str, value: tf.Tensor, low: float, high: float
) -> tf.Tensor:
    """Returns one number in [low, high]."""
    value = checked_scalar(function, name, value)
    message = f"{function}: {name} must be in [{low:g}, {high:g}], found"
    return checked(value, (value >= low) & (value <= high), message)


def checked_texts(function: str, name: str, texts: tf.Tensor) -> tf.Tensor:
    """Returns strings `[N]` of at most MAX_TEXT_BYTES."""
    texts = checked_shape(function, name, texts, (None,))
    message = f"{function}: {name} must have at most {MAX_TEXT_BYTES} bytes each, found"
    return _checked_lengths(texts, tf.strings.length(texts), MAX_TEXT_BYTES, message)


def cut_texts(
    function: str, name: str, texts: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns strings `[N]`, their first MAX_TEXT_BYTES, and which of them were cut."""
    texts = checked_shape(function, name, texts, (None,))
    cut = tf.strings.length(texts) > MAX_TEXT_BYTES
    return tf.strings.substr(texts, 0, MAX_TEXT_BYTES), cut


def checked_tokens_of_texts(
    function: str, name: str, tokens: tf.RaggedTensor
) -> tf.RaggedTensor:
    """Returns the tokens of texts, at most MAX_TEXT_TOKENS of each."""
    message = (
        f"{function}: {name} must have at most {MAX_TEXT_TOKENS} tokens each, found"
    )
    lengths = tokens.row_lengths()
    flat = _checked_lengths(tokens.flat_values, lengths, MAX_TEXT_TOKENS, message)
    return tokens.with_flat_values(flat)


def _checked_lengths(
    value: tf.Tensor, lengths: tf.Tensor, most: int, message: str
) -> tf.Tensor:
    longest = tf.reduce_max(tf.concat([tf.cast(lengths, tf.int64), [0]], axis=0))
    check = tf.debugging.Assert(longest <= most, [message, longest])
    with tf.control_dependencies([check]):
        return tf.identity(value)


def checked_max_tokens(function: str, value: tf.Tensor) -> tf.Tensor:
    """Returns the number of words to say, in [0, MAX_TOKENS]."""
    return checked_number(function, "max_tokens", value, 0, MAX_TOKENS)


def checked_temperature(function: str, value: tf.Tensor) -> tf.Tensor:
    """Returns the temperature, finite and not negative."""
    value = checked_scalar(function, "temperature", value)
    valid = (value >= 0) & tf.math.is_finite(value)
    return checked(
        value, valid, f"{function}: temperature must be >= 0 and finite, found"
    )


def checked_share(function: str, name: str, value: tf.Tensor) -> tf.Tensor:
    """Returns a number in [0, 1]."""
    return checked_number(function, name, value, 0, 1)


def checked_latents(
    function: str, latents: tf.Tensor, shape: tuple[int, ...]
) -> tf.Tensor:
    """Returns latents, finite and of this shape behind their first axis."""
    latents = checked_shape(function, "latents", latents, (None, *shape))
    finite = tf.reduce_all(tf.math.is_finite(latents))
    return checked(latents, finite, f"{function}: latents must be finite, found")


def readable_tokens(vocabulary: Vocabulary, most: int = 1000) -> np.ndarray:
    """Returns tokens that are read back as they are written: int64 `[N]`.

    `most` of the vocabulary, at random, are tried.
    """
    some = np.random.default_rng(0).permutation(len(vocabulary))[:most]
    if vocabulary.rule in SUBWORD_RULES:
        # All at once: a call takes milliseconds.
        texts = vocabulary.decode_tensor(tf.constant(some[:, np.newaxis], tf.int32))
        read = vocabulary.encode_tensor(texts).to_list()
        return np.array(
            [i for i, ids in zip(some, read, strict=True) if ids == [i]], np.int64
        )
    kept = [i for i in some if list(vocabulary.encode(vocabulary.decode([i]))) == [i]]
    return np.array(kept, np.int64)
