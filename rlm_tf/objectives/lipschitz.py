"""Lipschitz constants of layers: operator norms of what their kernels do.

Kernels have Keras' layouts; biases do not matter. `norm="one"` is the largest sum of
what an input contributes to all outputs, `norm="inf"` the largest sum of what an output
collects. As a term of a teacher's loss the *sum* over layers keeps a network smooth
(Dong 2025, section 2.4; Gouk et al. 2021 project each layer instead). Scalars, in the
dtype of the kernel, with the gradient of the largest sum.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_floating, check_integer, check_option
from rlm_tf.typing import TensorLike

Norm = Literal["one", "inf"]
# Of convolutions: exact; the bound that leaves out strides; what the authors' code
# computes, the sum of all weights' sizes.
Variant = Literal["exact", "gouk", "authors"]


def dense(kernel: TensorLike, *, norm: Norm = "one") -> tf.Tensor:
    """Returns the operator norm of `x -> x W`.

        one: max_i sum_o |W_io|,    inf: max_o sum_i |W_io|

    An embedding is that of one-hot vectors, a recurrent cell has two such kernels.

    Args:
        kernel: W, `[inputs, outputs]`.
        norm: "one" or "inf".

    Raises:
        ValueError: If the kernel is no matrix, or `norm` another.
        TypeError: If the kernel is not floating point.
    """
    weights = _sizes("dense", kernel, 2, norm)
    return tf.reduce_max(tf.reduce_sum(weights, axis=1 if norm == "one" else 0))


def conv(
    kernel: TensorLike,
    *,
    strides: int | Sequence[int] = 1,
    dilations: int | Sequence[int] = 1,
    groups: int = 1,
    norm: Norm = "one",
    variant: Variant = "exact",
) -> tf.Tensor:
    """Returns the operator norm of a convolution, over images that are large enough.

        one: max_(c, r) sum |K[taps of r, c, :]|,    inf: max_o sum |K[:, c, o]|

    With strides an input is seen by the taps of one residue class r alone: tap a (of a
    dilation d and a stride s) is in class a d mod s, along each axis. It is exact where
    some input is seen by all taps of its class, or some output sees all its taps;
    smaller images have less.

    Args:
        kernel: `[*taps, inputs / groups, outputs]`, of one to three axes of taps.
        strides: s, of each axis or of all.
        dilations: d, likewise.
        groups: Groups of channels.
        norm: "one" or "inf".
        variant: "exact"; "gouk": without classes, a bound for strides above 1;
            "authors": the sum of all |K|, up to `inputs` times as large.

    Raises:
        ValueError: If shapes or options do not fit.
        TypeError: If the kernel is not floating point.
    """
    name = "conv"
    rank = tf.convert_to_tensor(kernel).shape.rank
    if rank not in (3, 4, 5):
        raise ValueError(
            f"{name}: `kernel` must have one to three axes of taps and two of channels,"
            f" found {rank} axes."
        )
    weights = _sizes(name, kernel, rank, norm)
    check_option(name, "variant", variant, ("exact", "gouk", "authors"))
    axes = list(range(rank - 2))
    strides, dilations = (
        _of_axes(name, argument, value, len(axes))
        for argument, value in (("strides", strides), ("dilations", dilations))
    )
    check_integer(name, "groups", groups, 1)
    outputs = weights.shape[-1]
    if outputs % groups:
        raise ValueError(
            f"{name}: `groups` must divide the {outputs} outputs, found {groups}."
        )
    if variant == "authors":
        return tf.reduce_sum(weights)
    if norm == "inf":
        return tf.reduce_max(tf.reduce_sum(weights, axis=[*axes, rank - 2]))
    grouped = tf.reshape(weights, [*weights.shape[:-1], groups, outputs // groups])
    # By tap, of an input's contributions.
    by_tap = tf.reduce_sum(grouped, axis=-1)
    if variant == "gouk":
        return tf.reduce_max(tf.reduce_sum(by_tap, axis=axes))
    sums = [
        tf.reduce_max(tf.reduce_sum(_of_class(by_tap, chosen), axis=axes))
        for chosen in _classes(by_tap.shape.as_list()[:-2], strides, dilations)
    ]
    return tf.reduce_max(tf.stack(sums))


def depthwise(
    kernel: TensorLike,
    *,
    strides: int | Sequence[int] = 1,
    dilations: int | Sequence[int] = 1,
    norm: Norm = "one",
    variant: Variant = "exact",
) -> tf.Tensor:
    """Returns the operator norm of a convolution of each channel on its own.

    Args:
        kernel: `[*taps, channels, multiplier]`.
        strides: As of `conv`.
        dilations: As of `conv`.
        norm: "one" or "inf".
        variant: As of `conv`.

    Raises:
        ValueError: If shapes or options do not fit.
        TypeError: If the kernel is not floating point.
    """
    check_floating("depthwise", kernel=kernel)
    kernel = tf.convert_to_tensor(kernel)
    *taps, channels, multiplier = kernel.shape.as_list()
    return conv(
        tf.reshape(kernel, [*taps, 1, channels * multiplier]),
        strides=strides,
        dilations=dilations,
        groups=channels,
        norm=norm,
        variant=variant,
    )


def batch_norm(scale: TensorLike, variance: TensorLike, *, epsilon: float) -> tf.Tensor:
    """Returns the operator norm of batch normalisation that is not trained further.

        max_c |gamma_c| / sqrt(variance_c + epsilon)

    Args:
        scale: gamma, `[C]`.
        variance: The moving variance, `[C]`; a constant, without gradient.
        epsilon: Of the layer: Keras' default is 1e-3, PyTorch's 1e-5.

    Raises:
        TypeError: If an argument is not floating point.
    """
    check_floating("batch_norm", scale=scale, variance=variance)
    scale = tf.convert_to_tensor(scale)
    variance = tf.stop_gradient(tf.cast(variance, scale.dtype))
    return tf.reduce_max(tf.abs(scale) * tf.math.rsqrt(variance + epsilon))


# === Parts ===


def _sizes(name: str, kernel: TensorLike, rank: int, norm: str) -> tf.Tensor:
    """Returns the sizes of a kernel's weights, whose number of axes is checked."""
    check_floating(name, kernel=kernel)
    check_option(name, "norm", norm, ("one", "inf"))
    kernel = tf.convert_to_tensor(kernel)
    if kernel.shape.rank != rank or None in kernel.shape.as_list():
        raise ValueError(
            f"{name}: `kernel` must have {rank} known axes, found shape "
            f"{kernel.shape.as_list()}."
        )
    return tf.abs(kernel)


def _of_axes(
    name: str, argument: str, value: int | Sequence[int], axes: int
) -> tuple[int, ...]:
    values = (value,) * axes if isinstance(value, int) else tuple(value)
    if len(values) != axes:
        raise ValueError(
            f"{name}: `{argument}` must be one number or {axes}, found {value!r}."
        )
    for each in values:
        check_integer(name, argument, each, 1)
    return values


def _classes(
    taps: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[tuple[np.ndarray, ...]]:
    """Returns the taps of each residue class, along each axis."""
    along = []
    for number, stride, dilation in zip(taps, strides, dilations, strict=True):
        classes = np.arange(number) * dilation % stride
        along.append([np.flatnonzero(classes == each) for each in np.unique(classes)])
    return list(itertools.product(*along))


def _of_class(by_tap: tf.Tensor, chosen: Sequence[np.ndarray]) -> tf.Tensor:
    for axis, taps in enumerate(chosen):
        by_tap = tf.gather(by_tap, taps, axis=axis)
    return by_tap
