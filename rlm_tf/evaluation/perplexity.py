"""Exact perplexity of a stream, alone and interpolated with a restricted model."""

from __future__ import annotations

import math
from typing import NamedTuple

import keras
import numpy as np

from rlm_tf.checks import check_integer
from rlm_tf.evaluation.dynamic import DynamicEvaluation
from rlm_tf.evaluation.log_probs import (
    restricted_target_log_probs,
    scorer,
    target_log_probs,
)
from rlm_tf.evaluation.monte_carlo import MonteCarloDropout
from rlm_tf.numerics import perplexity
from rlm_tf.restricted import RestrictedModel
from rlm_tf.restricted.ngrams.backoff_model import BackoffModel

_BISECTIONS = 60
_LEAST_FLOOR = 1e-5


class CorpusPerplexity(NamedTuple):
    """How well a stream was predicted.

    Attributes:
        nats_per_token: Mean negative log-likelihood; infinite if a token was given
            probability 0.
        perplexity: Its exponential.
        bits_per_token: The same mean to base 2; bits per character of characters.
        num_tokens: Number of tokens predicted.
        bits_per_byte: Bits for all tokens over the bytes of their text: a number that
            compares vocabularies. None where the bytes are not known.
        perplexity_per_word: The exponential of the nats for all tokens over the words
            of their text, likewise.
    """

    nats_per_token: float
    perplexity: float
    bits_per_token: float
    num_tokens: int
    bits_per_byte: float | None = None
    perplexity_per_word: float | None = None


def perplexity_of(
    log_probs: np.ndarray, num_bytes: int | None = None, num_words: int | None = None
) -> CorpusPerplexity:
    """Summarises log-probabilities of tokens.

    Args:
        log_probs: Natural logarithms `[N]`, N >= 1.
        num_bytes: UTF-8 bytes of the tokens' text (`Corpus.num_bytes`).
        num_words: White-space words of the tokens' text (`Corpus.num_words`).

    Raises:
        ValueError: If there are none, or one is not a number, or a size is not
            positive.
    """
    for name, size in (("num_bytes", num_bytes), ("num_words", num_words)):
        if size is not None:
            check_integer("perplexity_of", name, size, 1)
    log_probs = np.asarray(log_probs, np.float64)
    if log_probs.size == 0:
        raise ValueError("perplexity_of: expected N >= 1 log-probabilities, found 0.")
    if np.isnan(log_probs).any():
        first = int(np.argmax(np.isnan(log_probs)))
        raise ValueError(f"perplexity_of: log-probability {first} is not a number.")
    nats = -float(log_probs.mean())
    total = nats * log_probs.size
    return CorpusPerplexity(
        nats,
        perplexity(nats),
        nats / math.log(2.0),
        log_probs.size,
        None if num_bytes is None else total / math.log(2.0) / num_bytes,
        None if num_words is None else perplexity(total / num_words),
    )


def evaluate(
    model: keras.Model,
    tokens: np.ndarray,
    batch_size: int,
    window: int,
    *,
    prefix: int,
    temperature: float = 1.0,
    dynamic: DynamicEvaluation | None = None,
    monte_carlo: MonteCarloDropout | None = None,
    temperature_from: np.ndarray | None = None,
    progress: str | None = None,
    num_bytes: int | None = None,
    num_words: int | None = None,
) -> CorpusPerplexity:
    """Returns the perplexity of a stream, every token predicted exactly once.

    Other arguments and errors are those of `target_log_probs`, which also tells how the
    result depends on `batch_size` (a little) and `window` (not at all, for models with
    states).

    Args:
        temperature_from: Validation text on which `search_temperature` finds the
            temperature first, without dynamic evaluation, as published, but with the
            same dropout masks; None: `temperature` is given.
        num_bytes: See `perplexity_of`.
        num_words: See `perplexity_of`.

    Raises:
        ValueError: If `temperature` and `temperature_from` are both given, or dynamic
            evaluation diverges.
    """
    if temperature_from is not None:
        if temperature != 1.0:
            raise ValueError(
                "evaluate: give `temperature` or `temperature_from`, not both."
            )
        temperature = search_temperature(
            model,
            temperature_from,
            batch_size,
            window,
            prefix=prefix,
            monte_carlo=monte_carlo,
        )
    log_probs = target_log_probs(
        model,
        tokens,
        batch_size,
        window,
        prefix=prefix,
        temperature=temperature,
        dynamic=dynamic,
        monte_carlo=monte_carlo,
        progress=progress,
    )
    log_probs = _not_diverged("evaluate", log_probs, dynamic)
    return perplexity_of(log_probs, num_bytes, num_words)


def search_temperature(
    model: keras.Model,
    tokens: np.ndarray,
    batch_size: int,
    window: int,
    *,
    prefix: int,
    dynamic: DynamicEvaluation | None = None,
    monte_carlo: MonteCarloDropout | None = None,
    most_tokens: int | None = 50_000,
) -> float:
    """Returns the temperature with the lowest perplexity, to be used for other text.

    The search of Melis et al. (2018, 2020): 1/T is 1.06, 1.04, 1.02, ... and not below
    0.8, until two in a row are no better than the best; the first `most_tokens` of the
    text count (theirs are the first of each row). Tune it on validation text. Monte
    Carlo dropout has the same masks at every temperature.

    Arguments and errors are those of `target_log_probs`.
    """
    text = np.asarray(tokens)[:most_tokens]
    best, best_nats, worse = 1.0, math.inf, 0
    with scorer(
        model,
        batch_size,
        window,
        prefix=prefix,
        dynamic=dynamic,
        monte_carlo=monte_carlo,
    ) as score:
        for step in range(14):
            temperature = 1.0 / (1.06 - 0.02 * step)
            log_probs = score(text, temperature)
            nats = perplexity_of(
                _not_diverged("search_temperature", log_probs, dynamic)
            ).nats_per_token
            if nats < best_nats:
                best, best_nats, worse = temperature, nats, 0
            else:
                worse += 1
            if worse == 2:
                break
    return best


def _not_diverged(
    function: str, log_probs: np.ndarray, dynamic: DynamicEvaluation | None
) -> np.ndarray:
    """Returns log-probabilities; raises ValueError if the weights ran away."""
    if dynamic is not None and np.isnan(log_probs).any():
        raise ValueError(
            f"{function}: dynamic evaluation diverged before token "
            f"{int(np.argmax(np.isnan(log_probs)))}: lower its `learning_rate`, found "
            f"{dynamic.learning_rate:g}, or raise its `epsilon`, found "
            f"{dynamic.epsilon:g}."
        )
    return log_probs


# === Interpolation ===


def interpolate(log_q: np.ndarray, log_p: np.ndarray, mu: float) -> np.ndarray:
    """Returns `log((1 - mu) Q + mu P)` of every token, float64 `[N]`.

    Args:
        log_q: Log-probabilities of the full model, `[N]`.
        log_p: Those of the restricted model, `[N]`; may be minus infinity.
        mu: Weight of the restricted model, in [0, 1].

    Raises:
        ValueError: If the shapes differ, a value is not a number, or `mu` is out of
            range.
    """
    log_q, log_p = _checked_pair("interpolate", log_q, log_p)
    if not 0.0 <= mu <= 1.0:
        raise ValueError(f"interpolate: `mu` must be in [0, 1], found {mu}.")
    with np.errstate(divide="ignore"):
        return np.logaddexp(log_q + np.log1p(-mu), log_p + np.log(mu))


def tune_interpolation(log_q: np.ndarray, log_p: np.ndarray) -> float:
    """Returns the weight of the restricted model with the lowest perplexity.

    The mean of `log((1 - mu) Q + mu P)` is concave in mu, so bisection of its
    derivative, the mean of `(P - Q) / ((1 - mu) Q + mu P)`, finds the maximum, at an
    end of [0, 1] if it is there. Tokens to which both models give probability 0 do not
    count. Tune it on validation text.

    Args:
        log_q: Log-probabilities of the full model, `[N]`.
        log_p: Those of the restricted model, `[N]`; may be minus infinity.

    Raises:
        ValueError: If the shapes differ, a value is not a number, or no token counts.
    """
    log_q, log_p = _checked_pair("tune_interpolation", log_q, log_p)
    larger = np.maximum(log_q, log_p)
    possible = larger > -np.inf
    if not possible.any():
        raise ValueError(
            "tune_interpolation: expected tokens to which one of the models gives a "
            f"probability above 0, found none among {len(log_q)}."
        )
    # Divided by the larger of the two, so that nothing overflows or vanishes.
    q = np.exp(log_q[possible] - larger[possible])
    p = np.exp(log_p[possible] - larger[possible])
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        mu = 0.5 * (low + high)
        if np.mean((p - q) / ((1.0 - mu) * q + mu * p)) > 0.0:
            low = mu
        else:
            high = mu
    # An end that never moved is where the maximum is.
    return 0.0 if low == 0.0 else 1.0 if high == 1.0 else 0.5 * (low + high)


def tune_floor(
    restricted_model: BackoffModel, tokens: np.ndarray, *, prefix: int
) -> float:
    """Returns the share of the uniform distribution with the lowest perplexity.

    An n-gram model may give words of the vocabulary that its text lacks no probability
    at all. With a floor, `(1 - floor) P + floor / V`, it can be scored on all tokens,
    as full models are. A validation text without such words would have none; then, and
    wherever less is best, the floor is 1e-5. Tune it on validation text and give it to
    `with_floor`.

    Args:
        restricted_model: A fitted n-gram model without a floor.
        tokens: Validation text, integers `[N]`.
        prefix: The token before the first, `<eos>` as a rule.

    Raises:
        ValueError: If the model has no tables, or a floor already.
    """
    if restricted_model.floor:
        raise ValueError(
            "tune_floor: the model must have no floor yet, found "
            f"{restricted_model.floor}."
        )
    log_p = restricted_target_log_probs(restricted_model, tokens, prefix=prefix)
    size = restricted_model.vocabulary_size
    assert size is not None  # It has scored tokens.
    uniform = np.full(len(log_p), -math.log(size))
    return max(tune_interpolation(log_p, uniform), _LEAST_FLOOR)


def interpolated_perplexity(
    model: keras.Model,
    restricted_model: RestrictedModel,
    tokens: np.ndarray,
    mu: float | np.ndarray,
    *,
    batch_size: int,
    window: int,
    prefix: int,
    num_bytes: int | None = None,
    num_words: int | None = None,
) -> list[CorpusPerplexity]:
    """Returns the perplexity of `(1 - mu) Q + mu P` for one or more weights.

    Both models pass over the text once, whatever the number of weights.

    Args:
        model: The full model Q, see `target_log_probs`.
        restricted_model: The restricted model P.
        tokens: Integers `[N]`.
        mu: Weight of P in [0, 1], or a vector of them.
        batch_size: See `target_log_probs`.
        window: See `target_log_probs`.
        prefix: The token before the first, `<eos>` as a rule.
        num_bytes: See `perplexity_of`.
        num_words: See `perplexity_of`.

    Returns:
        One result per weight.

    Raises:
        ValueError: If a weight is out of range; see also `target_log_probs`.
    """
    log_q = target_log_probs(model, tokens, batch_size, window, prefix=prefix)
    log_p = restricted_target_log_probs(restricted_model, tokens, prefix=prefix)
    return [
        perplexity_of(interpolate(log_q, log_p, float(weight)), num_bytes, num_words)
        for weight in np.atleast_1d(mu)
    ]


def _checked_pair(
    function: str, log_q: np.ndarray, log_p: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    log_q, log_p = np.asarray(log_q, np.float64), np.asarray(log_p, np.float64)
    if log_q.ndim != 1 or log_q.shape != log_p.shape:
        raise ValueError(
            f"{function}: `log_q` and `log_p` must both have axes [N], found "
            f"{log_q.shape} and {log_p.shape}."
        )
    for name, values in (("log_q", log_q), ("log_p", log_p)):
        if np.isnan(values).any():
            first = int(np.argmax(np.isnan(values)))
            raise ValueError(f"{function}: `{name}` {first} is not a number.")
    return log_q, log_p
