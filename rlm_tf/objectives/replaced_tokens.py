"""Detection of replaced tokens: ELECTRA's two losses, and what theory says of them.

A generator reads a text with hidden tokens and draws others in their place; a detector
says of each token of the result whether it was replaced (Clark et al. 2020, arXiv
2003.10555; Dong 2025, chapter 1). Label 1 stands for replaced, everywhere. Losses are
by position, in nats; half precision is widened, float64 stays.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.special
import tensorflow as tf

from rlm_tf.checks import check_floating, check_range, check_shapes, checked_ids
from rlm_tf.numerics import at_least_single, cast_like
from rlm_tf.token_draws import draw_tokens
from rlm_tf.typing import LossOutput, TensorLike

# The bound has a minimum at L > 0 if C is below this times k.
SWEET_SPOT_LIMIT = math.sqrt(2.0) * math.exp(-0.5)
# More than Newton's method needs from where `sweet_spot` begins.
_NEWTON_STEPS = 20


class GeneratorExtra(NamedTuple):
    """By-products of `generator_loss`; they carry no gradient.

    Attributes:
        weights: `[...]`, 1 where masked, else 0: the weights of the mean.
        correct: `[...]`, 1 where masked and the most probable token is the right one.
    """

    weights: tf.Tensor
    correct: tf.Tensor


class DetectorExtra(NamedTuple):
    """By-products of `detector_loss`; they carry no gradient.

    Attributes:
        weights: `[...]`, 0 where padding, else 1: the weights of the mean.
        probs: `[...]`, the probability of having been replaced.
    """

    weights: tf.Tensor
    probs: tf.Tensor


def generator_loss(
    logits: TensorLike, tokens: TensorLike, positions: TensorLike
) -> LossOutput:
    """Returns the cross-entropy of masked tokens.

        loss_t = -ln softmax(z_t)[w_t] where t is masked, else 0;
        L_G = sum_t loss_t / number of masked positions

    Args:
        logits: z, `[..., V]`.
        tokens: w, the right tokens, int `[...]`.
        positions: bool `[...]`, True where masked.

    Returns:
        `loss` `[...]`, to be averaged with the weights of `extra`.

    Raises:
        ValueError: If shapes do not fit or tokens are no integers.
        TypeError: If `logits` is not floating point.
    """
    name = "generator_loss"
    check_floating(name, logits=logits)
    logits = at_least_single(logits)
    tokens = checked_ids(name, "tokens", tokens)
    masked = tf.cast(positions, tf.bool)
    check_shapes(
        name,
        logits=(logits, "... V"),
        tokens=(tokens, "..."),
        positions=(masked, "..."),
    )
    # What stands elsewhere may be no token, and its logits not finite.
    tokens = tf.where(masked, tokens, tf.zeros_like(tokens))
    safe = tf.where(masked[..., tf.newaxis], logits, tf.zeros_like(logits))
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(tokens, safe)
    weights = tf.cast(masked, logits.dtype)
    best = tf.argmax(safe, axis=-1, output_type=tokens.dtype)
    correct = tf.cast(masked & (best == tokens), logits.dtype)
    return LossOutput(loss * weights, GeneratorExtra(weights, correct))


def corrupted_tokens(
    logits: TensorLike,
    tokens: TensorLike,
    positions: TensorLike,
    uniforms: TensorLike,
    *,
    temperature: float = 1.0,
) -> tf.Tensor:
    """Returns the text with masked tokens drawn from `softmax(z / temperature)`.

    No gradient goes through it. A draw may be the right token.

    Args:
        logits: z, `[..., V]`, the generator's.
        tokens: int `[...]`, what unmasked positions keep.
        positions: bool `[...]`, True where masked.
        uniforms: float64 in [0, 1), `[...]`, by which tokens are drawn.
        temperature: Positive; 1 is the generator's distribution.

    Returns:
        `[...]`, dtype of `tokens`.

    Raises:
        ValueError: If shapes do not fit, or the temperature is not positive.
    """
    name = "corrupted_tokens"
    least = float(np.finfo(np.float32).tiny)
    check_range(name, least, math.inf, temperature=temperature)
    logits = tf.stop_gradient(at_least_single(logits))
    tokens = checked_ids(name, "tokens", tokens)
    masked = tf.cast(positions, tf.bool)
    check_shapes(
        name,
        logits=(logits, "... V"),
        tokens=(tokens, "..."),
        positions=(masked, "..."),
        uniforms=(uniforms, "..."),
    )
    rows = tf.reshape(logits, [-1, logits.shape[-1] or tf.shape(logits)[-1]])
    drawn = draw_tokens(rows / temperature, tf.reshape(uniforms, [-1]))
    drawn = tf.reshape(tf.cast(drawn, tokens.dtype), tf.shape(tokens))
    return tf.where(masked, drawn, tokens)


def detection_labels(
    original: TensorLike, corrupted: TensorLike, positions: TensorLike
) -> tf.Tensor:
    """Returns what a detector should say: masked, and another token than before.

    A masked token that the generator got right counts as not replaced.

    Args:
        original: int `[...]`.
        corrupted: int `[...]`.
        positions: bool `[...]`, True where masked.

    Returns:
        bool `[...]`, True where replaced.

    Raises:
        ValueError: If shapes do not fit or tokens are no integers.
    """
    name = "detection_labels"
    original = checked_ids(name, "original", original)
    corrupted = checked_ids(name, "corrupted", corrupted)
    masked = tf.cast(positions, tf.bool)
    check_shapes(
        name,
        original=(original, "..."),
        corrupted=(corrupted, "..."),
        positions=(masked, "..."),
    )
    return masked & (original != tf.cast(corrupted, original.dtype))


def detector_loss(
    logits: TensorLike, labels: TensorLike, padding: TensorLike
) -> LossOutput:
    """Returns the binary cross-entropy of each token that is no padding.

        loss_t = SP(z_t) - y_t z_t where t is no padding, else 0;
        L_D = sum_t loss_t / number of tokens

    Args:
        logits: z, `[...]`, of having been replaced.
        labels: y, bool or 0 and 1, `[...]`, 1 where replaced.
        padding: bool `[...]`, True where padding.

    Returns:
        `loss` `[...]`, to be averaged with the weights of `extra`.

    Raises:
        ValueError: If shapes do not fit.
        TypeError: If `logits` is not floating point.
    """
    name = "detector_loss"
    check_floating(name, logits=logits)
    logits = at_least_single(logits)
    targets = tf.cast(labels, logits.dtype)
    present = ~tf.cast(padding, tf.bool)
    check_shapes(
        name,
        logits=(logits, "..."),
        labels=(targets, "..."),
        padding=(present, "..."),
    )
    safe = tf.where(present, logits, tf.zeros_like(logits))
    loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=safe)
    weights = tf.cast(present, logits.dtype)
    probs = tf.stop_gradient(tf.sigmoid(safe)) * weights
    return LossOutput(loss * weights, DetectorExtra(weights, probs))


# === What theory says ===


class IdealDetector(NamedTuple):
    """What can be known of a position whose context is intact.

    Attributes:
        probability_replaced: `[..., V]`, given the token that is seen.
        probability_of_seeing: `[..., V]`, of each token.
        replaced_share: `[...]`, probability that the token is another than before.
        least_cross_entropy: `[...]`, of any detector on average, nats.
    """

    probability_replaced: np.ndarray
    probability_of_seeing: np.ndarray
    replaced_share: np.ndarray
    least_cross_entropy: np.ndarray


def ideal_detector(
    true_probs: npt.ArrayLike, generator_probs: npt.ArrayLike, *, ratio: float
) -> IdealDetector:
    """Returns the best detector of tokens that a generator may have replaced.

        P(replaced | w) = m G(w) (1 - P(w)) / ((1 - m) P(w) + m G(w))

    Where it is known that a position was selected, it is 1 - P(w) whatever G is.

    Args:
        true_probs: P, `[..., V]`, of each token given its context.
        generator_probs: G, `[..., V]`.
        ratio: m, the share of the positions that is selected, in [0, 1].

    Raises:
        ValueError: If shapes differ, or an argument is no probability.
    """
    name = "ideal_detector"
    true, drawn = (
        np.asarray(probs, np.float64) for probs in (true_probs, generator_probs)
    )
    check_range(
        name, 0.0, 1.0, true_probs=true, generator_probs=drawn, ratio=np.float64(ratio)
    )
    if true.shape != drawn.shape or true.ndim == 0:
        raise ValueError(
            f"{name}: `true_probs` and `generator_probs` must have one shape [..., V], "
            f"found {list(true.shape)} and {list(drawn.shape)}."
        )
    replaced = ratio * drawn * (1 - true)
    seen = (1 - ratio) * true + ratio * drawn
    share = np.divide(replaced, seen, out=np.zeros_like(seen), where=seen > 0)
    entropy = scipy.special.entr(share) + scipy.special.entr(1 - share)
    return IdealDetector(share, seen, replaced.sum(-1), (seen * entropy).sum(-1))


def bound(loss: TensorLike | float, k: float, c: float) -> tf.Tensor:
    """Returns the bound of Eq. (1.10) on the detector's error, with F(x) = x.

        B(L) = k e^(-L) + C sqrt(L)

    Args:
        loss: L, the generator's loss, nats, any shape.
        k: What training has left of the detector's error, (1 - eta_D xi_D)^t_D.
        c: C = m_D / sqrt 2, weight of the generator's own error.

    Returns:
        The shape and dtype of `loss`; float64 for numbers and lists.

    Raises:
        ValueError: If an argument is negative.
    """
    values = tf.convert_to_tensor(loss if tf.is_tensor(loss) else np.asarray(loss))
    if not values.dtype.is_floating:
        values = tf.cast(values, tf.float64)
    check_range("bound", 0.0, math.inf, loss=values, k=k, c=c)
    k, c = cast_like(k, values), cast_like(c, values)
    return k * tf.exp(-values) + c * tf.sqrt(values)


def sweet_spot(k: float, c: float) -> float | None:
    """Returns where `bound` has its minimum at L > 1/2, or None if it has none.

    The root of k e^(-L) = C / (2 sqrt L) above 1/2, which there is if C < 0.857764 k.
    It is a local minimum: only for C < 0.638173 k is the bound less than that of a
    perfect generator, B(0) = k.

    Args:
        k: Positive.
        c: C, positive.

    Raises:
        ValueError: If an argument is not positive.
    """
    least = float(np.finfo(np.float64).tiny)
    check_range("sweet_spot", least, math.inf, k=k, c=c)
    if not c < SWEET_SPOT_LIMIT * k:
        return None
    # (2 k / C)^2 = e^(2 L) / L, in logarithms, for squares of small ratios are 0:
    # x = 2 L is the larger root of x - ln x = w.
    w = math.log(2) + 2 * (math.log(k) - math.log(c))
    # From above Newton's steps stay above the root, which is 1 at least.
    x = w + math.sqrt(2 * (w - 1)) if w > 1 else 1.0
    for _ in range(_NEWTON_STEPS):
        x -= (x - math.log(x) - w) / (1 - 1 / x) if x > 1 else 0.0
    return x / 2
