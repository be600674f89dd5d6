"""The samples that Monte Carlo objectives are computed from, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_floating, check_range, check_shapes
from rlm_tf.numerics import cast_like
from rlm_tf.typing import TensorLike


class Samples(NamedTuple):
    """Log-likelihoods `l` and log-ratios `h` of samples, `[K, ...]` each."""

    log_likelihood: tf.Tensor
    log_ratio: tf.Tensor

    def first(self, count: int | None) -> Samples:
        """Returns the first samples; all if `count` is None."""
        if count is None:
            return self
        return Samples(self.log_likelihood[:count], self.log_ratio[:count])

    def possible(self) -> tf.Tensor:
        """Returns where any sample can have said x, bool `[...]`.

        One that is no number counts: what is computed from it must be none, either.
        """
        log_weights = self.log_likelihood + self.log_ratio
        return tf.reduce_any(tf.not_equal(log_weights, -np.inf), axis=0)

    def where_possible(self) -> Samples:
        """Returns the samples, with zeros where none can have said x."""
        possible = self.possible()
        return Samples(*(tf.where(possible, v, tf.zeros_like(v)) for v in self))


def checked_samples(
    function: str, log_p_x_given_z: TensorLike, log_p_z: TensorLike, log_q_z: TensorLike
) -> Samples:
    """Returns `l` and `h` of the dtype of `log_p_x_given_z`.

    Raises:
        ValueError: If shapes do not fit or there is no sample.
        TypeError: If `log_p_x_given_z` is not floating point.
    """
    log_likelihood = checked_log_likelihood(function, log_p_x_given_z)
    log_p_z, log_q_z = (cast_like(v, log_likelihood) for v in (log_p_z, log_q_z))
    check_shapes(
        function,
        log_p_x_given_z=(log_likelihood, "..."),
        log_p_z=(log_p_z, "..."),
        log_q_z=(log_q_z, "..."),
    )
    log_ratio = log_p_z - log_q_z
    # While graphs are traced, one may know the number of samples and the other not.
    shape = log_likelihood.shape.merge_with(log_ratio.shape)
    log_likelihood.set_shape(shape)
    log_ratio.set_shape(shape)
    return Samples(log_likelihood, log_ratio)


def checked_log_likelihood(function: str, log_p_x_given_z: TensorLike) -> tf.Tensor:
    """Returns log-likelihoods `[K, ...]` of at least one sample, as a tensor.

    Raises:
        ValueError: If there is no sample.
        TypeError: If they are not floating point.
    """
    log_likelihood = tf.convert_to_tensor(log_p_x_given_z)
    check_floating(function, log_p_x_given_z=log_likelihood)
    if log_likelihood.shape.rank == 0 or log_likelihood.shape[0] == 0:
        raise ValueError(
            f"{function}: `log_p_x_given_z` must have axes [K ...] with at least one "
            f"sample, found shape {log_likelihood.shape.as_list()}."
        )
    return log_likelihood


def checked_options(
    function: str, alpha: Any, lambda_: Any, log_likelihood: tf.Tensor
) -> tuple[Any, Any]:
    """Returns the options of objectives: Python's numbers, or tensors.

    Args:
        function: Name of the caller; messages start with it.
        alpha: Scalar, or one for each example.
        lambda_: Like `alpha`.
        log_likelihood: `[K, ...]`, of the examples.

    Raises:
        ValueError: Unless alpha is positive and lambda finite, as far as that is known
            while a graph is traced, and both are scalars or fit the examples.
    """
    check_numbers(function, alpha, lambda_)
    examples = log_likelihood.shape[1:]
    found = []
    for name, value in (("alpha", alpha), ("lambda_", lambda_)):
        if isinstance(value, int | float):
            found.append(value)
            continue
        value = cast_like(value, log_likelihood)
        found.append(value)
        if not _broadcasts(value.shape, examples):
            raise ValueError(
                f"{function}: `{name}` must be a scalar or have the shape of the "
                f"examples, {_as_list(examples)}, found {_as_list(value.shape)}."
            )
    return found[0], found[1]


def check_numbers(function: str, alpha: Any, lambda_: Any) -> None:
    """Raises ValueError unless alpha is positive and lambda finite."""
    check_range(function, float(np.finfo(np.float32).tiny), np.inf, alpha=alpha)
    check_range(function, -np.inf, np.inf, lambda_=lambda_)


def _broadcasts(shape: tf.TensorShape, to: tf.TensorShape) -> bool:
    """Returns whether the first shape may be broadcast to the second as it stands."""
    if shape.rank is None or to.rank is None:
        return True
    if shape.rank > to.rank:
        return False
    ends = to[to.rank - shape.rank :]
    return all(
        own == 1 or own is None or other is None or own == other
        for own, other in zip(shape, ends, strict=True)
    )


def _as_list(shape: tf.TensorShape) -> list[int | None] | None:
    return None if shape.rank is None else shape.as_list()


def with_counts(
    function: str, samples: Samples, num_samples: tuple[int, int] | None
) -> Samples:
    """Returns the samples, checked to be as many as counts say.

    Raises:
        ValueError: Unless there are two counts, of samples that are there.
        tf.errors.InvalidArgumentError: If a graph finds too few samples as it runs.
    """
    if num_samples is None:
        return samples
    if not isinstance(num_samples, Sequence) or len(num_samples) != 2:
        raise ValueError(
            f"{function}: `num_samples` must be the counts of evidence and "
            f"divergence, or None, found {num_samples!r}."
        )
    there = samples.log_likelihood.shape[0]
    if there is not None and max(num_samples) > there:
        raise ValueError(
            f"{function}: `num_samples` must not exceed the {there} samples, found "
            f"{tuple(num_samples)}."
        )
    if there is not None:
        return samples
    number = tf.shape(samples.log_likelihood)[0]
    message = f"{function}: `num_samples` = {tuple(num_samples)} exceeds the samples,"
    check = tf.debugging.Assert(number >= max(num_samples), [message, number])
    with tf.control_dependencies([check]):
        return Samples(tf.identity(samples.log_likelihood), samples.log_ratio)
