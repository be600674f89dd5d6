"""How much a language model's own segments tell of each other, without a critic."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.evaluation.log_probs import log_softmax_at
from rlm_tf.generation.generate import generate
from rlm_tf.generation.stepwise import StepwiseModel, as_stepwise
from rlm_tf.models.language.interface import language_model_of
from rlm_tf.objectives.mutual_information import conditional_bounds

# Numbers in an array of logits.
_MOST_LOGITS = 8_000_000


class ModelInformation(NamedTuple):
    """Bounds of I(X; Y) under a model, in nats.

    Attributes:
        lower: Mean over samples; at most ln N. In expectation below the information.
        upper: Likewise; above.
        lower_error: Standard error of `lower`.
        upper_error: Standard error of `upper`.
        conditional_entropy: H(Y | X), nats a segment; H(Y) is as far above it as the
            information is large.
    """

    lower: float
    upper: float
    lower_error: float
    upper_error: float
    conditional_entropy: float


def model_information(
    model: keras.Model,
    *,
    segment: int,
    pairs: int,
    prefix: int,
    seed: int,
) -> ModelInformation:
    """Bounds the mutual information of two neighbouring segments that a model says.

    N samples of 2 L tokens are drawn from the model after `prefix`; X is the first half
    of each, Y the second. As Q(Y | X) is known, so are, of each sample,

        lower_j = ln Q(y_j|x_j) - ln mean_i Q(y_j|x_i)
        upper_j = the same, without i = j among the i

    (Poole et al. 2019). The cost is that of N^2 segments.

    Args:
        model: A language model.
        segment: L.
        pairs: N, at least 2.
        prefix: The token that samples begin after, `<eos>` as a rule.
        seed: Of the samples.

    Raises:
        ValueError: If a number is out of range.
    """
    name = "model_information"
    check_integer(name, "segment", segment, 1)
    check_integer(name, "pairs", pairs, 2)
    check_integer(name, "prefix", prefix, 0)
    check_integer(name, "seed", seed, 0)
    stepwise = as_stepwise(model, 2 * segment + 1)
    size = getattr(language_model_of(model), "vocabulary_size", None)
    if size is None:
        features, _ = stepwise.forward(
            tf.zeros([1, 1], tf.int32), stepwise.zero_states(1)
        )
        size = stepwise.output_logits(features).shape[-1]
    if prefix >= size:
        raise ValueError(
            f"{name}: `prefix` must be a token of the model, in [0, {size}), found "
            f"{prefix}."
        )
    samples = generate(
        model,
        tf.fill([pairs, 1], prefix),
        2 * segment,
        seed=seed,
        context_length=2 * segment + 1,
    ).to_tensor()
    first = tf.concat([tf.fill([pairs, 1], prefix), samples[:, :segment]], axis=1)
    log_probs = _all_log_probs(stepwise, first, samples[:, segment:])
    lower, upper = (np.asarray(bound) for bound in conditional_bounds(log_probs))
    root = math.sqrt(pairs)
    return ModelInformation(
        float(lower.mean()),
        float(upper.mean()),
        float(lower.std(ddof=1)) / root,
        float(upper.std(ddof=1)) / root,
        float(-np.diag(log_probs).mean()),
    )


def _all_log_probs(
    stepwise: StepwiseModel, first: tf.Tensor, second: tf.Tensor
) -> np.ndarray:
    """Returns ln Q(second_j | first_i), float64 `[N, N]`."""
    features, states = stepwise.forward(first, stepwise.zero_states(len(first)))
    last = stepwise.output_logits(features[:, -1])
    number, steps = second.shape
    opening = tf.nn.log_softmax(last)

    @tf.function(autograph=False, reduce_retracing=True)
    def rest(states: Any, tokens: tf.Tensor) -> tf.Tensor:
        features, _ = stepwise.forward(tokens[:, :-1], states)
        logits = stepwise.output_logits(features)
        return tf.reduce_sum(log_softmax_at(logits, tokens[:, 1:]), axis=1)

    each = max(steps - 1, 1) * int(last.shape[-1])
    size = min(number**2, max(1, _MOST_LOGITS // each))
    found = np.empty(number**2)
    for begin in range(0, number**2, size):
        flat = np.arange(begin, min(begin + size, number**2))
        contexts, continuations = np.divmod(flat, number)
        tokens = tf.gather(second, continuations)
        opened = tf.gather(tf.gather(opening, contexts), tokens[:, 0], batch_dims=1)
        total = np.asarray(opened, np.float64)
        if steps > 1:
            own = tf.nest.map_structure(
                lambda state, contexts=contexts: tf.gather(state, contexts), states
            )
            total = total + np.asarray(rest(own, tokens), np.float64)
        found[flat] = total
    return found.reshape(number, number)
