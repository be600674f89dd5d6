"""Evaluates a model in all ways: temperature, Monte Carlo, dynamic, and both."""

from __future__ import annotations

import itertools
import time
from typing import Any, NamedTuple

import keras
import numpy as np

from rlm_tf import evaluation
from rlm_tf.data import Corpus

# Validation tokens on which what dynamic evaluation needs is chosen.
_TUNED_ON = 10_000
_LEARNING_RATES = (3e-5, 1e-4, 3e-4, 1e-3)
_DECAYS = (1e-3, 1e-2)
_EPSILON = 1e-5
# Rows of the windows of training text whose gradients are measured.
_STATISTICS_ROWS = 64


class Settings(NamedTuple):
    """How much is spent on evaluations.

    Attributes:
        samples: Dropout masks of Monte Carlo evaluation.
        dynamic_samples: The same where every sample adapts its own weights.
        rate_scales: What dropout rates are multiplied by, the best on validation text.
        window: Tokens between two updates of dynamic evaluation.
    """

    samples: int = 30
    dynamic_samples: int = 4
    rate_scales: tuple[float, ...] = (0.6, 0.8, 1.0)
    window: int = 20


def grid(
    model: keras.Model, corpus: Corpus, text: np.ndarray, settings: Settings
) -> dict[str, Any]:
    """Returns the perplexities of every way, and what was chosen on validation text.

    Every token is scored once. Dynamic evaluation reads the texts in one row, as it
    must; the others read 20 rows at once. What is chosen (temperature, scale of the
    dropout rates, learning rate and decay) is chosen on validation text, so that the
    validation column flatters all ways.

    Args:
        model: The trained language model.
        corpus: Its corpus.
        text: The training text it has seen.
        settings: How much to spend.
    """
    eos = corpus.vocabulary.eos_id
    texts = {"valid": corpus.valid, "test": corpus.test}
    temperature = evaluation.search_temperature(model, corpus.valid, 20, 35, prefix=eos)
    scale = _best_scale(model, corpus, settings)
    chosen = _best_dynamic(model, corpus, text, settings)
    statistics = chosen.pop("statistics")
    dynamic = evaluation.DynamicEvaluation(
        statistics, chosen["learning_rate"], chosen["decay"], _EPSILON
    )
    found: dict[str, Any] = {
        "temperature": temperature,
        "rate_scale": scale,
        "dynamic": {**chosen, "epsilon": _EPSILON, "window": settings.window},
        "samples": settings.samples,
        "dynamic_samples": settings.dynamic_samples,
        "perplexity": {},
        "seconds": {},
    }
    kinds: dict[str, dict[str, Any]] = {
        "static": {},
        "dynamic": {"dynamic": dynamic},
        "static, Monte Carlo": {
            "monte_carlo": evaluation.MonteCarloDropout(settings.samples, scale)
        },
        "dynamic, Monte Carlo": {
            "dynamic": dynamic,
            "monte_carlo": evaluation.MonteCarloDropout(
                settings.dynamic_samples, scale
            ),
        },
    }
    for name, ways in kinds.items():
        began = time.perf_counter()
        found["perplexity"][name] = {}
        # The mean of many masks is flat enough as it is.
        heat = 1.0 if "monte_carlo" in ways else temperature
        for split, tokens in texts.items():
            rows = 1 if "dynamic" in ways else 20
            window = settings.window if "dynamic" in ways else 35
            found["perplexity"][name][split] = evaluation.evaluate(
                model, tokens, rows, window, prefix=eos, temperature=heat, **ways
            ).perplexity
        found["seconds"][name] = round(time.perf_counter() - began, 1)
        print(f"{name}: {found['perplexity'][name]}", flush=True)
    return found


def _best_scale(model: keras.Model, corpus: Corpus, settings: Settings) -> float:
    text = corpus.valid[:_TUNED_ON]
    samples = max(2, settings.samples // 3)

    def nats(scale: float) -> float:
        monte_carlo = evaluation.MonteCarloDropout(samples, scale)
        return evaluation.evaluate(
            model,
            text,
            20,
            35,
            prefix=corpus.vocabulary.eos_id,
            monte_carlo=monte_carlo,
        ).nats_per_token

    return min(settings.rate_scales, key=nats)


def _best_dynamic(
    model: keras.Model, corpus: Corpus, text: np.ndarray, settings: Settings
) -> dict[str, Any]:
    eos = corpus.vocabulary.eos_id
    statistics = evaluation.gradient_statistics(
        model, text, _STATISTICS_ROWS, settings.window, prefix=eos
    )
    trials = []
    for rate, decay in itertools.product(_LEARNING_RATES, _DECAYS):
        dynamic = evaluation.DynamicEvaluation(statistics, rate, decay, _EPSILON)
        result = evaluation.evaluate(
            model,
            corpus.valid[:_TUNED_ON],
            1,
            settings.window,
            prefix=eos,
            dynamic=dynamic,
        )
        trials.append((result.nats_per_token, rate, decay))
    nats, rate, decay = min(trials)
    return {
        "statistics": statistics,
        "learning_rate": rate,
        "decay": decay,
        "nats_when_tuned": nats,
        "trials": [list(trial) for trial in trials],
    }
