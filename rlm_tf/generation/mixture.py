"""A language model mixed with a restricted model, one word after the other."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from rlm_tf.generation.stepwise import StepwiseModel
from rlm_tf.generation.tempered import TemperedStepwise
from rlm_tf.numerics import at_least_single
from rlm_tf.restricted import RestrictedModel


class MixtureStepwise:
    """The stepwise model `(1 - mu) Q + mu P` of a full and a restricted model.

    Its logits are log-probabilities, and its states those of Q with the last words
    read, of which P sees the last `context_length`. Where Q gives every word a
    probability, so does the mixture, whatever P does.

    Args:
        model: The stepwise full model Q; None: P alone, and `mu` does not count.
        restricted_model: The restricted model P.
        mu: Its weight, in (0, 1).
        prefix: The token that stands before every text, `<eos>` as a rule.

    Raises:
        ValueError: If `mu` is out of its range, or P has no tables yet.
    """

    def __init__(
        self,
        model: StepwiseModel | None,
        restricted_model: RestrictedModel,
        mu: float,
        prefix: int,
    ) -> None:
        if model is not None and not 0.0 < mu < 1.0:
            raise ValueError(f"mixture: `mu` must be in (0, 1), found {mu}.")
        if restricted_model.vocabulary_size is None:
            raise ValueError(
                f"mixture: {type(restricted_model).__name__} has no tables yet: call "
                "`fit` or load it first."
            )
        size = restricted_model.vocabulary_size
        known = getattr(model, "vocabulary_size", None)
        if known not in (None, size):
            raise ValueError(
                f"mixture: the restricted model has {size} tokens, the other {known}: "
                "they do not belong together."
            )
        self.model = model
        self.restricted_model = restricted_model
        self.mu = float(mu)
        self.prefix = int(prefix)

    def zero_states(self, batch_size: int | tf.Tensor) -> Any:
        """Returns the states of Q, and words `[B, context_length]`."""
        length = self.restricted_model.context_length
        words = tf.fill([batch_size, length], tf.constant(self.prefix, tf.int32))
        return () if self.model is None else self.model.zero_states(batch_size), words

    def forward(self, tokens: tf.Tensor, states: Any) -> tuple[tf.Tensor, Any]:
        """Reads int `[B, T]`; features are those of Q, then the last words."""
        inner, words = states
        length = self.restricted_model.context_length
        tokens = tf.cast(tokens, tf.int32)
        read = tf.concat([words, tokens], axis=1)
        # Behind each token: it and the ones before it.
        place = tf.range(tf.shape(tokens)[1])[:, tf.newaxis] + 1 + tf.range(length)
        # Exact: ids are below 2^24.
        seen = tf.cast(tf.gather(read, place, axis=1), tf.float32)
        seen = tf.ensure_shape(seen, [None, None, length])
        words = read[:, tf.shape(read)[1] - length :]
        words = tf.ensure_shape(words, [None, length])
        if self.model is None:
            return seen, (inner, words)
        features, inner = self.model.forward(tokens, inner)
        features = tf.concat([tf.cast(features, tf.float32), seen], axis=-1)
        return features, (inner, words)

    def output_logits(self, features: tf.Tensor) -> tf.Tensor:
        """Maps features `[..., F]` to log-probabilities `[..., V]`, float32."""
        length = self.restricted_model.context_length
        size = features.shape[-1] - length
        words = features[..., size:]
        contexts = tf.reshape(tf.cast(words, tf.int64), [-1, length])
        log_p = self.restricted_model.log_probs(contexts)
        outer = tf.shape(features)[:-1]
        log_p = tf.reshape(log_p, tf.concat([outer, [log_p.shape[-1]]], axis=0))
        if self.model is None:
            return log_p
        own = self.model.output_logits(features[..., :size])
        return log_mixture(own, log_p, self.mu)


def log_mixture(logits: tf.Tensor, log_p: tf.Tensor, mu: float) -> tf.Tensor:
    """Returns `log((1 - mu) softmax(logits) + mu P)`, float32 `[..., V]`.

    In log space, so that no probability of Q is lost below the least number.

    Args:
        logits: Of the full model, `[..., V]`.
        log_p: Log-probabilities of the restricted model; may be minus infinity.
        mu: Weight of the latter, in (0, 1).
    """
    log_q = tf.nn.log_softmax(at_least_single(logits)) + math.log1p(-mu)
    log_q = tf.cast(log_q, tf.float32)
    log_p = log_p + math.log(mu)
    apart = tf.where(log_q == log_p, 0.0, tf.abs(log_q - log_p))
    return tf.maximum(log_q, log_p) + tf.math.log1p(tf.exp(-apart))


def tempered_mixture(
    model: StepwiseModel,
    temperature: float,
    mixture: tuple[RestrictedModel, float] | None,
    prefix: int,
) -> StepwiseModel:
    """Returns a model at its temperature, mixed with a restricted model.

    Args:
        model: The stepwise full model.
        temperature: Of the full model alone.
        mixture: The restricted model and its weight mu; None: none.
        prefix: The token that stands before every text.
    """
    if temperature != 1.0:
        model = TemperedStepwise(model, temperature)
    if mixture is not None:
        model = MixtureStepwise(model, *mixture, prefix)
    return model
