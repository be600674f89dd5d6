"""Many logistic regressions at once, in one compiled graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, check_shapes
from rlm_tf.models.logistic_imm import binary_log_probs
from rlm_tf.objectives.binary import induced_binary_cross_entropy
from rlm_tf.objectives.imm import noising_cross_entropy
from rlm_tf.objectives.neighbors import neighbor_log_weights
from rlm_tf.typing import TensorLike

OBJECTIVES = ("imm", "noising")


class LogisticWeights(NamedTuple):
    """Weights of R logistic regressions: kernels `[R, D]` and biases `[R]`."""

    kernels: tf.Tensor
    biases: tf.Tensor


def fit_logistic_runs(
    x: TensorLike,
    y: TensorLike,
    target_probs: TensorLike,
    ratios: TensorLike,
    *,
    short_features: Sequence[int] = (0,),
    inverse_bandwidths: TensorLike = 1.0,
    weights: TensorLike | None = None,
    objective: str = "imm",
    learning_rate: float = 1.0,
    steps: int = 5000,
) -> LogisticWeights:
    """Fits R data sets by full-batch gradient descent from zero.

    Each run minimises `(1 - r) CE + r IMM`, means over its examples, as `LogisticIMM`
    does under `fit()`; `objective="noising"` puts the noising loss of Eq. (16) in the
    place of IMM. All runs take every step together, XLA-compiled.

    Args:
        x: Features float `[R, n, D]`.
        y: Labels int `[R, n]`, 0 or 1.
        target_probs: `[R, n]`, the restricted model's P(y = 1 | short features).
        ratios: r, `[R]` or a number, in [0, 1].
        short_features: Which features are the short context.
        inverse_bandwidths: alpha of the kernel, `[R]` or a number.
        weights: `[R, n]`, 0 leaves an example out, as in cross-validation; None: ones.
        objective: `"imm"` or `"noising"`.
        learning_rate: Of gradient descent.
        steps: Of gradient descent.

    Returns:
        The weights after the last step, in the dtype of `x`.

    Raises:
        ValueError: If shapes do not fit or an option is unknown.
    """
    function = "fit_logistic_runs"
    if objective not in OBJECTIVES:
        raise ValueError(
            f"{function}: `objective` must be one of {', '.join(OBJECTIVES)}; found "
            f"{objective!r}."
        )
    check_integer(function, "steps", steps, 0)
    x = tf.convert_to_tensor(x)
    runs, dtype = x.shape[0], x.dtype
    y, target_probs = tf.cast(y, dtype), tf.cast(target_probs, dtype)
    weights = tf.ones_like(y) if weights is None else tf.cast(weights, dtype)
    ratios = tf.broadcast_to(tf.cast(ratios, dtype), [runs])
    alphas = tf.broadcast_to(tf.cast(inverse_bandwidths, dtype), [runs])
    check_shapes(
        function,
        x=(x, "R n D"),
        y=(y, "R n"),
        target_probs=(target_probs, "R n"),
        ratios=(ratios, "R"),
        inverse_bandwidths=(alphas, "R"),
        weights=(weights, "R n"),
    )
    short = np.isin(np.arange(x.shape[2]), list(short_features)).astype(dtype.name)
    matching = objective if bool(tf.reduce_any(ratios > 0)) else "none"
    return _fit(
        x,
        y,
        target_probs,
        ratios,
        alphas,
        weights,
        tf.constant(short),
        tf.constant(learning_rate, dtype),
        tf.constant(steps),
        matching,
    )


def logistic_logits(weights: LogisticWeights, x: TensorLike) -> tf.Tensor:
    """Returns logits of y = 1: `[R, N]` for features `[R, N, D]` or `[N, D]`."""
    x = tf.cast(x, weights.kernels.dtype)
    equation = "nd,rd->rn" if x.shape.rank == 2 else "rnd,rd->rn"
    return tf.einsum(equation, x, weights.kernels) + weights.biases[:, tf.newaxis]


@tf.function(jit_compile=True)
def _fit(
    x: tf.Tensor,
    y: tf.Tensor,
    target_probs: tf.Tensor,
    ratios: tf.Tensor,
    alphas: tf.Tensor,
    weights: tf.Tensor,
    short: tf.Tensor,
    learning_rate: tf.Tensor,
    steps: tf.Tensor,
    matching: str,
) -> LogisticWeights:
    seen = x * short
    totals = tf.reduce_sum(weights, axis=1)
    targets = tf.stack([1 - target_probs, target_probs], axis=-1)
    kernel = tf.nn.softmax(neighbor_log_weights(seen, seen, alphas, weights), axis=0)

    def loss(kernels: tf.Tensor, biases: tf.Tensor) -> tf.Tensor:
        logits = tf.einsum("rnd,rd->rn", x, kernels) + biases[:, tf.newaxis]
        losses = tf.nn.sigmoid_cross_entropy_with_logits(y, logits)
        losses *= (1 - ratios)[:, tf.newaxis]
        if matching == "noising":
            log_probs = binary_log_probs(logits)
            noising = noising_cross_entropy(targets, log_probs).loss
            losses += ratios[:, tf.newaxis] * noising
        elif matching == "imm":
            from_short = tf.einsum("rnd,rd->rn", seen, kernels)
            # What every example's extended context adds: [K, R, 1].
            rest = tf.transpose(logits - from_short)[..., tf.newaxis]
            induced = induced_binary_cross_entropy(
                target_probs, rest + from_short, kernel
            ).loss
            losses += ratios[:, tf.newaxis] * induced
        return tf.reduce_sum(weights * losses, axis=1) / totals

    def step(number: tf.Tensor, kernels: tf.Tensor, biases: tf.Tensor):
        with tf.GradientTape() as tape:
            tape.watch([kernels, biases])
            total = tf.reduce_sum(loss(kernels, biases))
        by_kernels, by_biases = tape.gradient(total, [kernels, biases])
        return (
            number + 1,
            kernels - learning_rate * by_kernels,
            biases - learning_rate * by_biases,
        )

    start = (tf.constant(0), tf.zeros_like(x[:, 0]), tf.zeros_like(totals))
    _, kernels, biases = tf.while_loop(lambda number, *_: number < steps, step, start)
    return LogisticWeights(kernels, biases)
