"""Evaluates a model in all ways: temperature, Monte Carlo, dynamic, and both."""

from __future__ import annotations

import itertools
import json
import math
import pathlib
import time
from typing import Any, NamedTuple

import keras
import numpy as np

from experiments.run_files import write_json
from rlm_tf import evaluation
from rlm_tf.data import Corpus
from rlm_tf.evaluation.window_stream import language_model_of

# Validation tokens on which what dynamic evaluation needs is chosen.
_TUNED_ON = 10_000
_LEARNING_RATES = (1e-4, 3e-4, 1e-3, 3e-3)
_DECAYS = (1e-3, 1e-2)
_EPSILONS = (1e-4, 1e-3, 1e-2)
# Rows of the windows of training text whose gradients are measured.
_STATISTICS_ROWS = 64
_ROWS, _WINDOW = 20, 35


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


def add_ways(
    path: pathlib.Path, folder: pathlib.Path, corpus: Corpus, settings: Settings
) -> dict[str, Any]:
    """Evaluates the model of a finished run in all ways and puts them into its row.

    Args:
        path: Of the row; if it has them already, nothing is done.
        folder: Of the run, with model.keras.
        corpus: Its corpus.
        settings: How much to spend.

    Returns:
        The row.

    Raises:
        ValueError: If the model is not there.
    """
    row = json.loads(path.read_text("utf-8"))
    spent = {"samples": settings.samples, "dynamic_samples": settings.dynamic_samples}
    earlier = row.get("ways") or {}
    if all(earlier.get(key) == value for key, value in spent.items()):
        return row
    saved = folder / "model.keras"
    if not saved.exists():
        raise ValueError(
            f"--mc_samples needs {saved}, which is not there, although the run was "
            f"done before ({path}); use another --results_dir, or --noresume."
        )
    print(f"{row['name']}: all ways of evaluation", flush=True)
    model = language_model_of(keras.models.load_model(saved, compile=False))
    text = corpus.train[: row["corpus"]["train_tokens"]]
    flags = " ".join(
        f"--{name}={value}"
        for name, value in zip(
            ("mc_samples", "dynamic_mc_samples"), spent.values(), strict=True
        )
    )
    ways = {"command": f"{row['command']} {flags}"}
    row["ways"] = ways | grid(model, corpus, text, settings)
    write_json(path, row)
    return row


def grid(
    model: keras.Model, corpus: Corpus, text: np.ndarray, settings: Settings
) -> dict[str, Any]:
    """Returns the perplexities of every way, and what was chosen on validation text.

    Every token is scored once. Dynamic evaluation reads the texts in one row, as it
    must; the others read 20 rows at once. What is chosen (temperature, scale of the
    dropout rates; learning rate, decay and epsilon of dynamic evaluation) is chosen on
    validation text, so that the validation column flatters all ways. Of a model without
    dropout there is no Monte Carlo evaluation.

    Args:
        model: The trained language model.
        corpus: Its corpus.
        text: The training text it has seen.
        settings: How much to spend.
    """
    eos = corpus.vocabulary.eos_id
    texts = {"valid": corpus.valid, "test": corpus.test}
    heat = evaluation.search_temperature(
        model, corpus.valid, _ROWS, _WINDOW, prefix=eos
    )
    dynamic, chosen = _best_dynamic(model, corpus, text, settings, heat)
    found: dict[str, Any] = {
        "temperature": heat,
        "dynamic": {**chosen, "window": settings.window},
        "samples": settings.samples,
        "dynamic_samples": settings.dynamic_samples,
        "perplexity": {},
        "seconds": {},
    }
    kinds: dict[str, dict[str, Any]] = {"static": {}, "dynamic": {"dynamic": dynamic}}
    if evaluation.has_dropout(model):
        scale = found["rate_scale"] = _best_scale(model, corpus, settings)
        many = evaluation.MonteCarloDropout(settings.samples, scale)
        few = evaluation.MonteCarloDropout(settings.dynamic_samples, scale)
        kinds["static, Monte Carlo"] = {"monte_carlo": many}
        kinds["dynamic, Monte Carlo"] = {"dynamic": dynamic, "monte_carlo": few}
    for name, ways in kinds.items():
        began = time.perf_counter()
        found["perplexity"][name] = {}
        rows, window = (1, settings.window) if "dynamic" in ways else (_ROWS, _WINDOW)
        for split, tokens in texts.items():
            found["perplexity"][name][split] = evaluation.evaluate(
                model,
                tokens,
                rows,
                window,
                prefix=eos,
                # The mean of many masks is flat enough as it is.
                temperature=1.0 if "monte_carlo" in ways else heat,
                progress=f"{name}, {split}",
                **ways,
            ).perplexity
        found["seconds"][name] = round(time.perf_counter() - began, 1)
        print(f"{name}: {found['perplexity'][name]}", flush=True)
    return found


def nats_of(
    model: keras.Model, tokens: np.ndarray, rows: int, window: int, **ways: Any
) -> float:
    """Returns the loss of a text, nats a token; infinite if it is not a number."""
    log_probs = evaluation.target_log_probs(model, tokens, rows, window, **ways)
    nats = -float(np.mean(log_probs, dtype=np.float64))
    return math.inf if math.isnan(nats) else nats


def dynamic_nats(
    model: keras.Model, corpus: Corpus, text: np.ndarray, *, window: int, **values: Any
) -> float:
    """Returns the loss of the beginning of the validation text, evaluated dynamically.

    Args:
        model: The trained language model.
        corpus: Its corpus.
        text: The training text it has seen.
        window: Tokens between two updates.
        **values: `learning_rate`, `decay` and `epsilon` of `DynamicEvaluation`.
    """
    prefix = corpus.vocabulary.eos_id
    statistics = evaluation.gradient_statistics(
        model, text, _STATISTICS_ROWS, window, prefix=prefix
    )
    dynamic = evaluation.DynamicEvaluation(statistics, **values)
    beginning = corpus.valid[:_TUNED_ON]
    return nats_of(model, beginning, 1, window, prefix=prefix, dynamic=dynamic)


def _best_scale(model: keras.Model, corpus: Corpus, settings: Settings) -> float:
    samples = max(2, settings.samples // 3)

    def nats(scale: float) -> float:
        return nats_of(
            model,
            corpus.valid[:_TUNED_ON],
            _ROWS,
            _WINDOW,
            prefix=corpus.vocabulary.eos_id,
            monte_carlo=evaluation.MonteCarloDropout(samples, scale),
        )

    return min(settings.rate_scales, key=nats)


def _best_dynamic(
    model: keras.Model,
    corpus: Corpus,
    text: np.ndarray,
    settings: Settings,
    temperature: float,
) -> tuple[evaluation.DynamicEvaluation, dict[str, Any]]:
    eos = corpus.vocabulary.eos_id
    statistics = evaluation.gradient_statistics(
        model, text, _STATISTICS_ROWS, settings.window, prefix=eos
    )
    trials = []
    for values in itertools.product(_LEARNING_RATES, _DECAYS, _EPSILONS):
        nats = nats_of(
            model,
            corpus.valid[:_TUNED_ON],
            1,
            settings.window,
            prefix=eos,
            temperature=temperature,
            dynamic=evaluation.DynamicEvaluation(statistics, *values),
        )
        trials.append((nats, *values))
    nats, *best = min(trials)
    chosen = dict(zip(("learning_rate", "decay", "epsilon"), best, strict=True))
    # JSON has no infinity: a trial that diverged has no loss.
    shown = [[n if math.isfinite(n) else None, *values] for n, *values in trials]
    return evaluation.DynamicEvaluation(statistics, *best), {
        **chosen,
        "nats_when_tuned": nats,
        "trials": shown,
    }
