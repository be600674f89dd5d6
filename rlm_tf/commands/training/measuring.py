"""How well the n-gram, the model and their mixture predict held-out text."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from rlm_tf import evaluation
from rlm_tf.evaluation import CorpusPerplexity, DynamicEvaluation
from rlm_tf.evaluation.log_probs import scorer
from rlm_tf.restricted import RestrictedModel

# Of mu, tuned to an end of [0, 1]: what can be served.
_LEAST_MU, _MOST_MU = 1e-4, 1 - 1e-4
# Dynamic evaluation: the published window, rates to choose from, and the first tokens
# of the validation text on which one is chosen.
_WINDOW = 20
_RATES = (1e-4, 3e-4, 1e-3)
_DECAY, _EPSILON = 1e-3, 1e-3
_CHOSEN_ON = 5000
_STATISTICS_ROWS = 64
# Tokens of each part of a text that is read side by side, and most parts; tokens that
# all parts read at once.
_ROW, _MOST_ROWS = 20_000, 32
_AT_ONCE = 1024


# Rows of the first of several models, by what they are of one.
FIRST = {"model": "first model", "mixture": "first model, mixture"}


class Text(NamedTuple):
    """A held-out text.

    Attributes:
        tokens: Ids `[N]`.
        num_bytes: Of the text, None where it is not known.
        num_words: Likewise.
    """

    tokens: np.ndarray
    num_bytes: int | None
    num_words: int | None

    def perplexity(self, log_probs: np.ndarray) -> CorpusPerplexity:
        """Summarises log-probabilities of its tokens."""
        return evaluation.perplexity_of(log_probs, self.num_bytes, self.num_words)


class Measured(NamedTuple):
    """Log-probabilities of the tokens of held-out texts.

    Attributes:
        log_probs: By model and split, `[N]` each.
        mu: Weight of the n-gram beside the model at that temperature.
        temperature: The best on the validation text.
    """

    log_probs: dict[str, dict[str, np.ndarray]]
    mu: float
    temperature: float

    def add_first(self, first: Measured) -> None:
        """Adds what the first of several models has, alone and mixed."""
        for name, row in FIRST.items():
            self.log_probs[row] = first.log_probs[name]


def n_gram_log_probs(model: RestrictedModel, text: Text, prefix: int) -> np.ndarray:
    """Returns the log-probabilities that an n-gram model gives a text."""
    return evaluation.restricted_target_log_probs(model, text.tokens, prefix=prefix)


def model_log_probs(
    model: keras.Model,
    texts: Mapping[str, Text],
    temperatures: Sequence[float],
    prefix: int,
) -> list[dict[str, np.ndarray]]:
    """Returns the log-probabilities that a language model gives texts.

    Of a long text several parts are read side by side, so long that what their first
    tokens do not see makes no difference.

    Args:
        model: The language model, whose windows see all that was read before.
        texts: By name.
        temperatures: At each, all texts are scored.
        prefix: `<eos>`.

    Returns:
        `[N]` by name, for each temperature.
    """
    found: list[dict[str, np.ndarray]] = [{} for _ in temperatures]
    by_rows: dict[int, list[str]] = {}
    for name, text in texts.items():
        rows = int(np.clip(len(text.tokens) // _ROW, 1, _MOST_ROWS))
        by_rows.setdefault(rows, []).append(name)
    for rows, names in by_rows.items():
        with scorer(model, rows, _AT_ONCE // rows, prefix=prefix) as score:
            for name in names:
                for log_probs, temperature in zip(found, temperatures, strict=True):
                    log_probs[name] = score(texts[name].tokens, temperature)
    return found


def measure(
    model: keras.Model,
    n_gram: RestrictedModel,
    texts: dict[str, Text],
    *,
    prefix: int,
) -> Measured:
    """Measures on `valid`, where weights are tuned, and on `test`.

    Args:
        model: The language model.
        n_gram: The n-gram model, with a floor.
        texts: `valid` and `test`.
        prefix: `<eos>`.
    """
    log_p = {
        split: n_gram_log_probs(n_gram, text, prefix) for split, text in texts.items()
    }
    valid = texts["valid"].tokens
    # Several rows are faster, and as good to compare temperatures.
    rows = min(_MOST_ROWS, len(valid))
    temperature = evaluation.search_temperature(
        model, valid, rows, _AT_ONCE // rows, prefix=prefix
    )
    temperatures = list(dict.fromkeys((1.0, temperature)))
    at = model_log_probs(model, texts, temperatures, prefix)
    found = {"n-gram": log_p, "model": at[0]}
    if temperature != 1.0:
        found["model, temperature"] = at[1]
    log_q = at[-1]
    mu = evaluation.tune_interpolation(log_q["valid"], log_p["valid"])
    mu = min(max(mu, _LEAST_MU), _MOST_MU)
    found["mixture"] = {
        split: evaluation.interpolate(log_q[split], log_p[split], mu) for split in texts
    }
    return Measured(found, mu, temperature)


def dynamic_log_probs(
    model: keras.Model,
    train: np.ndarray,
    texts: dict[str, Text],
    *,
    prefix: int,
    most_seconds: float | None,
) -> tuple[dict[str, np.ndarray], float] | str:
    """Returns log-probabilities under dynamic evaluation, and its rate.

    The rate is chosen on the beginning of the validation text.

    Args:
        model: The language model.
        train: The training text, of whose gradients the statistics are.
        texts: `valid` and `test`.
        prefix: `<eos>`.
        most_seconds: If it would take longer, nothing is done; None: no limit.

    Returns:
        `[N]` by split and the rate; or why there is nothing.
    """
    statistics = evaluation.gradient_statistics(
        model, train, _STATISTICS_ROWS, _WINDOW, prefix=prefix, most_windows=50
    )

    def at(rate: float) -> DynamicEvaluation:
        return DynamicEvaluation(
            statistics, learning_rate=rate, decay=_DECAY, epsilon=_EPSILON
        )

    def run(rate: float, tokens: np.ndarray) -> np.ndarray:
        return evaluation.target_log_probs(
            model, tokens, 1, _WINDOW, prefix=prefix, dynamic=at(rate)
        )

    first = texts["valid"].tokens[:_CHOSEN_ON]
    if most_seconds is not None:
        # The first windows are traced, the next ones tell.
        run(_RATES[0], first[: 5 * _WINDOW])
        began = time.perf_counter()
        run(_RATES[0], first[: 25 * _WINDOW])
        each = (time.perf_counter() - began) / min(25 * _WINDOW, len(first))
        total = sum(len(text.tokens) for text in texts.values())
        needed = each * (total + len(_RATES) * len(first))
        if needed > most_seconds:
            return (
                f"it would take {needed / 60:.1f} min, more than is left of --minutes"
            )
    losses: dict[float, Any] = {}
    for rate in _RATES:
        found = run(rate, first)
        if np.isfinite(found).all():
            losses[rate] = -found.mean()
    if losses:
        best = min(losses, key=lambda rate: losses[rate])
        log_probs = {split: run(best, text.tokens) for split, text in texts.items()}
        if all(np.isfinite(found).all() for found in log_probs.values()):
            return log_probs, best
    return "the model diverges as it learns from what it reads"
