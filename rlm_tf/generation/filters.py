"""Filters on next-token logits: temperature, top-k, nucleus, eta, locally typical.

Pure functions `[..., V] -> [..., V]` that set the logit of excluded tokens to minus
infinity. Every parameter is one number, or one per row (`[...]`), so that a batch may
carry the wishes of several people.

Among tokens of equal logit the lower id counts as the larger one: a filter keeps an
exact number of tokens.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from rlm_tf.numerics import multiply_no_nan_log
from rlm_tf.typing import TensorLike


def scale_by_temperature(
    logits: TensorLike, temperature: float | TensorLike
) -> tf.Tensor:
    """Returns logits of `p_i^{1/T} / sum_j p_j^{1/T}`; T = 0 keeps the largest only.

    Args:
        logits: `[..., V]`.
        temperature: T >= 0, finite; scalar or `[...]`. Some codes call 1/T temperature.

    Returns:
        `[..., V]`, shifted so that the largest entry is 0.

    Raises:
        ValueError: If T is a number and out of range.
    """
    logits = tf.convert_to_tensor(logits)
    _check_number("scale_by_temperature", "temperature", temperature, 0.0, math.inf)
    temperature = _per_row(temperature, logits, logits.dtype)
    # Shifted first: otherwise a tiny T would overflow, and inf - inf is not a number.
    shifted = logits - tf.reduce_max(logits, axis=-1, keepdims=True)
    scaled = shifted / tf.where(temperature > 0, temperature, 1)
    best = tf.argmax(logits, axis=-1, output_type=tf.int32)[..., tf.newaxis]
    is_best = tf.equal(tf.range(tf.shape(logits)[-1]), best)
    greedy = tf.where(is_best, tf.zeros_like(logits), _minus_infinity(logits))
    return tf.where(temperature > 0, scaled, greedy)


def keep_top_k(logits: TensorLike, k: int | TensorLike) -> tf.Tensor:
    """Keeps the k largest logits.

    Args:
        logits: `[..., V]`.
        k: Number of tokens kept; 0, or V and more, keeps all. Scalar or `[...]`.

    Raises:
        ValueError: If k is a number and negative.
    """
    logits = tf.convert_to_tensor(logits)
    _check_number("keep_top_k", "k", k, 0, math.inf)
    return _keep_largest(logits, _descending(logits), _top_k_size(logits, k))


def keep_nucleus(logits: TensorLike, p: float | TensorLike) -> tf.Tensor:
    """Keeps the smallest set of most probable tokens whose probability reaches p.

    The token with which the sum reaches p is kept, so at least one always is. Sums are
    taken in float64; where one equals p in exact arithmetic, rounding of the logits
    decides whether one more token is kept.

    Args:
        logits: `[..., V]`.
        p: In [0, 1]; 1 keeps all. Scalar or `[...]`.

    Raises:
        ValueError: If p is a number and out of range.
    """
    logits = tf.convert_to_tensor(logits)
    _check_number("keep_nucleus", "p", p, 0.0, 1.0)
    ordered = _descending(logits)
    return _keep_largest(logits, ordered, _nucleus_size(ordered, p))


def keep_eta(logits: TensorLike, epsilon: float | TensorLike) -> tf.Tensor:
    """Keeps tokens whose probability exceeds eta (Hewitt et al. 2022, 2210.15191).

        eta = min(epsilon, sqrt(epsilon) exp(-H))

    with H the entropy of the distribution, so that less is excluded where the model is
    unsure. The most probable token is always kept.

    Args:
        logits: `[..., V]`.
        epsilon: In [0, 1]; 0 keeps all. Scalar or `[...]`.

    Raises:
        ValueError: If epsilon is a number and out of range.
    """
    logits = tf.convert_to_tensor(logits)
    _check_number("keep_eta", "epsilon", epsilon, 0.0, 1.0)
    epsilon = _per_row(epsilon, logits, tf.float64)
    log_probs = tf.nn.log_softmax(tf.cast(logits, tf.float64))
    probs = tf.exp(log_probs)
    eta = tf.minimum(epsilon, tf.sqrt(epsilon) * tf.exp(-_entropy(log_probs)))
    best = tf.reduce_max(probs, axis=-1, keepdims=True)
    first = tf.equal(probs, best) & (
        tf.cumsum(tf.cast(tf.equal(probs, best), tf.int32), axis=-1) == 1
    )
    return tf.where(
        (probs > eta) | first | (epsilon <= 0), logits, _minus_infinity(logits)
    )


def keep_typical(logits: TensorLike, mass: float | TensorLike) -> tf.Tensor:
    """Locally typical sampling (Meister et al. 2022, arXiv 2202.00666).

    Keeps the smallest set of tokens whose probability reaches `mass`, in the order of
    `|-ln p_i - H|`: first those whose information is closest to the entropy H, which
    need not be the most probable ones.

    Args:
        logits: `[..., V]`.
        mass: In [0, 1]; 1 keeps all. Scalar or `[...]`.

    Raises:
        ValueError: If mass is a number and out of range.
    """
    logits = tf.convert_to_tensor(logits)
    _check_number("keep_typical", "mass", mass, 0.0, 1.0)
    log_probs = tf.nn.log_softmax(tf.cast(logits, tf.float64))
    surprise = tf.abs(-log_probs - _entropy(log_probs))
    order = tf.argsort(surprise, axis=-1, stable=True)
    rank = logits.shape.rank
    probs = tf.gather(tf.exp(log_probs), order, batch_dims=rank - 1)
    before = tf.cumsum(probs, axis=-1, exclusive=True)
    mass = _per_row(mass, logits, tf.float64)
    size = tf.reduce_sum(tf.cast(before < mass, tf.int32), axis=-1, keepdims=True)
    size = tf.where(mass < 1, tf.maximum(size, 1), tf.shape(logits)[-1])
    place = tf.argsort(order, axis=-1)
    return tf.where(place < size, logits, _minus_infinity(logits))


def filter_logits(
    logits: TensorLike,
    *,
    temperature: float | TensorLike = 1.0,
    top_k: int | TensorLike = 0,
    top_p: float | TensorLike = 1.0,
    eta: float | TensorLike = 0.0,
    typical_p: float | TensorLike = 1.0,
) -> tf.Tensor:
    """Applies temperature, then top-k, nucleus, eta and the typical set, in this order.

    Each sees the probabilities of what the ones before have left. Equal to
    `keep_typical(keep_eta(keep_nucleus(keep_top_k(scale_by_temperature(...)))))`, with
    one sort for top-k and nucleus, and with none when nothing is to be excluded.

    Args:
        logits: `[..., V]`.
        temperature: See `scale_by_temperature`.
        top_k: See `keep_top_k`.
        top_p: See `keep_nucleus`; of the probabilities renormalised after top-k.
        eta: The epsilon of `keep_eta`.
        typical_p: The mass of `keep_typical`.

    Raises:
        ValueError: If a parameter is a number and out of range.
    """
    _check_number("filter_logits", "top_k", top_k, 0, math.inf)
    _check_number("filter_logits", "top_p", top_p, 0.0, 1.0)
    _check_number("filter_logits", "eta", eta, 0.0, 1.0)
    _check_number("filter_logits", "typical_p", typical_p, 0.0, 1.0)
    logits = scale_by_temperature(logits, temperature)

    def filtered() -> tf.Tensor:
        size = _top_k_size(logits, top_k)
        # Sorting more than the largest k would be in vain.
        ordered = tf.math.top_k(logits, tf.reduce_max(size)).values
        inside = tf.range(tf.shape(ordered)[-1]) < size
        kept = tf.where(inside, ordered, _minus_infinity(logits))
        size = tf.minimum(size, _nucleus_size(kept, top_p))
        return _keep_largest(logits, ordered, size)

    excludes = tf.reduce_any(tf.greater(top_k, 0)) | tf.reduce_any(tf.less(top_p, 1.0))
    kept = tf.cond(excludes, filtered, lambda: logits)
    kept = tf.cond(
        tf.reduce_any(tf.greater(eta, 0)), lambda: keep_eta(kept, eta), lambda: kept
    )
    return tf.cond(
        tf.reduce_any(tf.less(typical_p, 1)),
        lambda: keep_typical(kept, typical_p),
        lambda: kept,
    )


def _entropy(log_probs: tf.Tensor) -> tf.Tensor:
    """Returns the entropy in nats, `[..., 1]`; excluded tokens have none."""
    terms = multiply_no_nan_log(tf.exp(log_probs), log_probs)
    return -tf.reduce_sum(terms, axis=-1, keepdims=True)


def _descending(logits: tf.Tensor) -> tf.Tensor:
    return tf.sort(logits, axis=-1, direction="DESCENDING")


def _top_k_size(logits: tf.Tensor, k: int | TensorLike) -> tf.Tensor:
    size = tf.shape(logits)[-1]
    k = _per_row(k, logits, tf.int32)
    return tf.where(k > 0, tf.minimum(k, size), size)


def _nucleus_size(ordered: tf.Tensor, p: float | TensorLike) -> tf.Tensor:
    """Returns how many of the descending logits the nucleus holds, `[..., 1]`."""
    p = _per_row(p, ordered, tf.float64)
    probs = tf.nn.softmax(tf.cast(ordered, tf.float64))
    before = tf.cumsum(probs, axis=-1, exclusive=True)
    size = tf.reduce_sum(tf.cast(before < p, tf.int32), axis=-1, keepdims=True)
    # The sum of all may stay a rounding error below 1.
    return tf.where(p < 1, tf.maximum(size, 1), tf.shape(ordered)[-1])


def _keep_largest(logits: tf.Tensor, ordered: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """Keeps `size` `[..., 1]` (or a scalar) largest, of equal ones the lowest ids."""
    rows = tf.shape(logits)[:-1]
    size = tf.broadcast_to(size, tf.concat([rows, [1]], axis=0))
    smallest = tf.gather(ordered, size - 1, batch_dims=logits.shape.rank - 1, axis=-1)
    larger, equal = logits > smallest, tf.equal(logits, smallest)
    room = size - tf.reduce_sum(tf.cast(larger, tf.int32), axis=-1, keepdims=True)
    fits = tf.cumsum(tf.cast(equal, tf.int32), axis=-1) <= room
    return tf.where(larger | (equal & fits), logits, _minus_infinity(logits))


def _minus_infinity(logits: tf.Tensor) -> tf.Tensor:
    return tf.constant(-math.inf, logits.dtype)


def _per_row(value: Any, logits: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Returns a scalar as it is and a value per row with a last axis of size 1."""
    # `tf.cast` alone takes numbers through single precision.
    value = tf.cast(tf.convert_to_tensor(value, dtype_hint=dtype), dtype)
    if value.shape.rank == 0:
        return value
    if value.shape.rank != logits.shape.rank - 1:
        raise ValueError(
            "a filter's parameter must be a scalar or have the shape of the logits "
            f"without the last axis, {logits.shape[:-1]}; found {value.shape}."
        )
    return value[..., tf.newaxis]


def _check_number(
    function: str, name: str, value: Any, low: float, high: float
) -> None:
    if not isinstance(value, (int, float, np.ndarray, np.generic)):
        return  # a tensor, perhaps of a graph
    array = np.asarray(value, np.float64)
    if not np.all(np.isfinite(array) & (array >= low) & (array <= high)):
        expected = f"in [{low}, {high}]" if high < math.inf else f">= {low} and finite"
        raise ValueError(f"{function}: `{name}` must be {expected}, found {value}.")
