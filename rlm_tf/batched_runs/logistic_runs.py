"""Many logistic regressions at once, in one compiled graph."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_floating, check_integer, check_range, check_shapes
from rlm_tf.numerics import cast_like
from rlm_tf.objectives.binary import induced_binary_cross_entropy
from rlm_tf.objectives.neighbors import neighbor_log_weights
from rlm_tf.typing import TensorLike

OBJECTIVES = ("imm", "noising")


class LogisticWeights(NamedTuple):
    """Weights of R logistic regressions: kernels `[R, D]` and biases `[R]`."""

    kernels: tf.Tensor
    biases: tf.Tensor


class Restriction(NamedTuple):
    """What one restricted model asks of R logistic regressions.

    Attributes:
        target_probs: `[R, n]`, its P(y = 1) at every example.
        ratios: `[R]`, its share of the objective.
        kernel: `[K, R, n]`, K = n: the weight of each neighbour's prediction in the
            induced model of an example; sums to 1 over K.
        substituted: `[D]`, 1 for features that the example itself gives, 0 for those
            that its neighbours give. All 0 where the short context is no subset of
            features: then neighbours stand for the example as they are.
    """

    target_probs: tf.Tensor
    ratios: tf.Tensor
    kernel: tf.Tensor
    substituted: tf.Tensor


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
    weight_decays: TensorLike = 0.0,
    initial: LogisticWeights | None = None,
    learning_rate: float = 1.0,
    steps: int = 5000,
) -> LogisticWeights:
    """Fits R data sets by full-batch gradient descent.

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
        weight_decays: `[R]` or a number: half of it times the squared norm of the
            kernel is added to the objective.
        initial: Weights to start from; None: zeros.
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
    x = tf.convert_to_tensor(x)
    check_floating(function, x=x)
    runs = x.shape[:1]
    targets = cast_like(target_probs, x)
    ratios = tf.broadcast_to(cast_like(ratios, x), runs)
    alphas = tf.broadcast_to(cast_like(inverse_bandwidths, x), runs)
    check_shapes(
        function,
        x=(x, "R n D"),
        y=(y, "R n"),
        target_probs=(targets, "R n"),
        ratios=(ratios, "R"),
        inverse_bandwidths=(alphas, "R"),
    )
    check_range(function, 0.0, 1.0, target_probs=targets, ratios=ratios)
    check_range(function, 0.0, np.inf, inverse_bandwidths=alphas)
    features = list(short_features)
    check_range(function, 0, x.shape[2] - 1, short_features=features)
    if objective == "noising":
        # Cross-entropies are linear in their targets: the two terms are one.
        shares = ratios[:, tf.newaxis]
        y = (1 - shares) * cast_like(y, x) + shares * targets
    fit = functools.partial(
        fit_restricted_runs,
        x,
        y,
        weights=weights,
        weight_decays=weight_decays,
        initial=initial,
        learning_rate=learning_rate,
        steps=steps,
    )
    if objective == "noising" or not bool(tf.reduce_any(ratios > 0)):
        return fit([])
    short = np.isin(np.arange(x.shape[2]), features).astype(x.dtype.name)
    kernel = neighbor_kernel(x * short, alphas, weights)
    return fit([Restriction(targets, ratios, kernel, tf.constant(short))])


def neighbor_kernel(
    short_features: TensorLike,
    inverse_bandwidths: TensorLike,
    weights: TensorLike | None = None,
) -> tf.Tensor:
    """Returns the normalised weights of neighbours, `[n, R, n]`.

    Args:
        short_features: `[R, n, L]`; see `neighbor_log_weights`.
        inverse_bandwidths: `[R]` or a number.
        weights: `[R, n]`, or None.
    """
    log_weights = neighbor_log_weights(
        short_features, short_features, inverse_bandwidths, weights
    )
    return tf.nn.softmax(log_weights, axis=0)


def fit_restricted_runs(
    x: TensorLike,
    y: TensorLike,
    restrictions: Sequence[Restriction],
    *,
    weights: TensorLike | None = None,
    weight_decays: TensorLike = 0.0,
    initial: LogisticWeights | None = None,
    learning_rate: float = 1.0,
    steps: int = 5000,
) -> LogisticWeights:
    """Fits R data sets with any number of restricted models each.

    A run minimises `(1 - sum_i r_i) CE + sum_i r_i IMM_i`.

    Args:
        x: Features float `[R, n, D]`.
        y: Labels `[R, n]`, 0 or 1, or probabilities of 1.
        restrictions: The restricted models.
        weights, weight_decays, initial, learning_rate, steps: See `fit_logistic_runs`.

    Returns:
        The weights after the last step, in the dtype of `x`.

    Raises:
        ValueError: If shapes do not fit.
    """
    function = "fit_restricted_runs"
    x = tf.convert_to_tensor(x)
    check_floating(function, x=x)
    y = cast_like(y, x)
    weights = tf.ones_like(y) if weights is None else cast_like(weights, x)
    decays = tf.broadcast_to(cast_like(weight_decays, x), x.shape[:1])
    check_integer(function, "steps", steps, 0)
    check_range(function, 0.0, 1.0, y=y)
    check_range(
        function,
        0.0,
        np.inf,
        weights=weights,
        weight_decays=decays,
        learning_rate=learning_rate,
    )
    check_shapes(
        function,
        x=(x, "R n D"),
        y=(y, "R n"),
        weights=(weights, "R n"),
        weight_decays=(decays, "R"),
    )
    given = [
        Restriction(*[cast_like(value, x) for value in restriction])
        for restriction in restrictions
    ]
    for restriction in given:
        check_shapes(
            function,
            y=(y, "R n"),
            target_probs=(restriction.target_probs, "R n"),
            ratios=(restriction.ratios, "R"),
            kernel=(restriction.kernel, "K R n"),
            substituted=(restriction.substituted, "D"),
            x=(x, "R n D"),
        )
        check_range(
            function,
            0.0,
            1.0,
            target_probs=restriction.target_probs,
            ratios=restriction.ratios,
        )
    total = tf.add_n([tf.zeros_like(decays), *[each.ratios for each in given]])
    # Up to the rounding of the sum.
    check_range(function, 0.0, 1.0 + 1e-6, sum_of_ratios=total)
    if initial is None:
        initial = LogisticWeights(tf.zeros_like(x[:, 0]), tf.zeros_like(y[:, 0]))
    initial = LogisticWeights(*[cast_like(value, x) for value in initial])
    return _fit(
        x,
        y,
        weights,
        given,
        decays,
        initial,
        cast_like(learning_rate, x),
        tf.constant(int(steps)),
    )


def logistic_logits(weights: LogisticWeights, x: TensorLike) -> tf.Tensor:
    """Returns logits of y = 1: `[R, N]` for features `[R, N, D]` or `[N, D]`."""
    x = cast_like(x, weights.kernels)
    equation = "nd,rd->rn" if x.shape.rank == 2 else "rnd,rd->rn"
    return tf.einsum(equation, x, weights.kernels) + weights.biases[:, tf.newaxis]


@tf.function(jit_compile=True)
def _fit(
    x: tf.Tensor,
    y: tf.Tensor,
    weights: tf.Tensor,
    restrictions: list[Restriction],
    decays: tf.Tensor,
    initial: LogisticWeights,
    learning_rate: tf.Tensor,
    steps: tf.Tensor,
) -> LogisticWeights:
    totals = tf.reduce_sum(weights, axis=1)
    main = 1 - tf.add_n([tf.zeros_like(totals), *[r.ratios for r in restrictions]])

    def objective(kernels: tf.Tensor, biases: tf.Tensor) -> tf.Tensor:
        logits = logistic_logits(LogisticWeights(kernels, biases), x)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(y, logits)
        losses *= main[:, tf.newaxis]
        for target_probs, ratios, kernel, substituted in restrictions:
            own = tf.einsum("rnd,rd->rn", x * substituted, kernels)
            # What every example's extended context adds: [K, R, 1].
            rest = tf.transpose(logits - own)[..., tf.newaxis]
            loss = induced_binary_cross_entropy(target_probs, rest + own, kernel).loss
            losses += ratios[:, tf.newaxis] * loss
        decay = decays * tf.reduce_sum(kernels**2, axis=1) / 2
        mean = tf.math.divide_no_nan(tf.reduce_sum(weights * losses, axis=1), totals)
        return mean + decay

    def step(number: tf.Tensor, kernels: tf.Tensor, biases: tf.Tensor):
        with tf.GradientTape() as tape:
            tape.watch([kernels, biases])
            total = tf.reduce_sum(objective(kernels, biases))
        by_kernels, by_biases = tape.gradient(total, [kernels, biases])
        return (
            number + 1,
            kernels - learning_rate * by_kernels,
            biases - learning_rate * by_biases,
        )

    _, kernels, biases = tf.while_loop(
        lambda number, *_: number < steps, step, (tf.constant(0), *initial)
    )
    return LogisticWeights(kernels, biases)
