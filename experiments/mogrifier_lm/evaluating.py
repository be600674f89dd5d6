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

from experiments.kit import machine
from experiments.kit.rows import Rows
from experiments.kit.scores import comparable, line_of
from rlm_tf import evaluation
from rlm_tf.command_line.json_files import with_nulls
from rlm_tf.data import Corpus
from rlm_tf.models.language.interface import language_model_of
from rlm_tf.numerics import perplexity

_ROWS, _WINDOW = 20, 35


class Settings(NamedTuple):
    """How much is spent on evaluations.

    Attributes:
        samples: Dropout masks of Monte Carlo evaluation.
        dynamic_samples: The same where every sample adapts its own weights.
        rate_scales: What dropout rates are multiplied by, the best on validation text.
        window: Tokens between two updates of dynamic evaluation.
        learning_rates: Of dynamic evaluation; these and the next two are all combined,
            the best on validation text.
        decays: Of dynamic evaluation.
        epsilons: Of dynamic evaluation.
        tuned_on: Validation tokens on which all this is chosen.
        statistics_rows: Rows of the windows of training text whose gradients are
            measured.
    """

    samples: int = 30
    dynamic_samples: int = 4
    rate_scales: tuple[float, ...] = (0.6, 0.8, 1.0)
    window: int = 20
    learning_rates: tuple[float, ...] = (1e-4, 3e-4, 1e-3, 3e-3)
    decays: tuple[float, ...] = (1e-3, 1e-2)
    epsilons: tuple[float, ...] = (1e-4, 1e-3, 1e-2)
    tuned_on: int = 10_000
    statistics_rows: int = 64


def add_ways(
    rows: Rows,
    name: str,
    folder: pathlib.Path,
    corpus: Corpus,
    settings: Settings,
) -> dict[str, Any]:
    """Evaluates the model of a finished run in all ways and puts them into its row.

    Args:
        rows: Have the row; if it has them already with these settings, nothing is done.
        name: Of the run.
        folder: Of the run, with model.keras.
        corpus: Its corpus.
        settings: How much to spend.

    Returns:
        The row.

    Raises:
        ValueError: If the model is not there.
    """
    row = rows.read(name, ("name", "command", "corpus.train_tokens"))
    # As JSON has it: tuples become lists.
    spent = json.loads(json.dumps(settings._asdict()))
    if (row.get("ways") or {}).get("settings") == spent:
        return row
    saved = folder / "model.keras"
    if not saved.exists():
        raise ValueError(
            f"--mc_samples needs {saved}, which is not there, although the run was "
            f"done before ({rows.place(name)}); use another --results_dir, or "
            "--noresume."
        )
    print(f"{row['name']}: all ways of evaluation", flush=True)
    model = language_model_of(keras.models.load_model(saved, compile=False))
    text = corpus.train[: row["corpus"]["train_tokens"]]
    masks = f"--mc_samples={settings.samples}"
    few = f"--dynamic_mc_samples={settings.dynamic_samples}"
    row["ways"] = {
        "command": f"{row['command']} {masks} {few}",
        "settings": spent,
        **grid(model, corpus, text, settings),
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
    }
    row = with_nulls(row)
    rows.write(name, row)
    return row


def grid(
    model: keras.Model, corpus: Corpus, text: np.ndarray, settings: Settings
) -> dict[str, Any]:
    """Returns the perplexities of every way, and what was chosen on validation text.

    Every token is scored once. Dynamic evaluation reads the texts in one row, as it
    must; the others read 20 rows at once. What diverges has no perplexity. Monte Carlo
    dropout without adaptation is there with as many masks as with it, too: more masks
    are better in themselves. All that is chosen (temperatures, scale of the dropout
    rates; learning rate, decay and epsilon of dynamic evaluation) is chosen on
    validation text, so that the validation column flatters all ways. A model without
    dropout has no Monte Carlo evaluation.

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
        "dynamic": chosen,
        "temperature": {},
        "perplexity": {},
        "seconds": {},
    }
    kinds: dict[str, dict[str, Any]] = {
        "static": {"temperature": heat},
        "dynamic": {"temperature": heat, "dynamic": dynamic},
    }
    if evaluation.has_dropout(model):
        scale = found["rate_scale"] = _best_scale(model, corpus, settings)
        for samples in sorted({settings.dynamic_samples, settings.samples}):
            masks = evaluation.MonteCarloDropout(samples, scale)
            way = {
                "temperature": evaluation.search_temperature(
                    model,
                    corpus.valid,
                    _ROWS,
                    _WINDOW,
                    prefix=eos,
                    monte_carlo=masks,
                    most_tokens=settings.tuned_on,
                ),
                "monte_carlo": masks,
            }
            kinds[f"static, {_masks(samples)}"] = way
            if samples == settings.dynamic_samples:
                kinds[f"dynamic, {_masks(samples)}"] = {**way, "dynamic": dynamic}
    for name, ways in kinds.items():
        began = time.perf_counter()
        found["temperature"][name] = ways["temperature"]
        found["perplexity"][name] = {}
        rows, window = (1, settings.window) if "dynamic" in ways else (_ROWS, _WINDOW)
        for split, tokens in texts.items():
            nats = nats_of(
                model,
                tokens,
                rows,
                window,
                prefix=eos,
                progress=f"{name}, {split}",
                **ways,
            )
            # JSON has no infinity: what diverged has no perplexity.
            found["perplexity"][name][split] = (
                perplexity(nats) if nats < math.inf else None
            )
        found["seconds"][name] = round(time.perf_counter() - began, 1)
        reached = found["perplexity"][name]
        scores = comparable(corpus, reached)
        for kind, values in scores.items():
            found.setdefault(kind, {})[name] = values
        print(line_of(name, reached, scores), flush=True)
    return found


def _masks(samples: int) -> str:
    return "1 mask" if samples == 1 else f"{samples} masks"


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
    defaults = Settings()
    statistics = evaluation.gradient_statistics(
        model, text, defaults.statistics_rows, window, prefix=prefix
    )
    dynamic = evaluation.DynamicEvaluation(statistics, **values)
    beginning = corpus.valid[: defaults.tuned_on]
    return nats_of(model, beginning, 1, window, prefix=prefix, dynamic=dynamic)


def _best_scale(model: keras.Model, corpus: Corpus, settings: Settings) -> float:
    samples = max(2, settings.samples // 3)

    def nats(scale: float) -> float:
        return nats_of(
            model,
            corpus.valid[: settings.tuned_on],
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
        model, text, settings.statistics_rows, settings.window, prefix=eos
    )
    trials = []
    for values in itertools.product(
        settings.learning_rates, settings.decays, settings.epsilons
    ):
        nats = nats_of(
            model,
            corpus.valid[: settings.tuned_on],
            1,
            settings.window,
            prefix=eos,
            temperature=temperature,
            dynamic=evaluation.DynamicEvaluation(statistics, *values),
        )
        trials.append((nats, *values))
    # What is best at the beginning may diverge later.
    for trial in sorted(trials):
        nats, *best = trial
        dynamic = evaluation.DynamicEvaluation(statistics, *best)
        whole = nats_of(
            model,
            corpus.valid,
            1,
            settings.window,
            prefix=eos,
            temperature=temperature,
            dynamic=dynamic,
            progress="dynamic, whole validation text",
        )
        if whole < math.inf:
            break
        print(f"diverges after the beginning: {best}", flush=True)
    chosen = dict(zip(("learning_rate", "decay", "epsilon"), best, strict=True))
    return dynamic, {
        **chosen,
        "nats_when_tuned": _or_none(nats),
        "trials": [[_or_none(n), *values] for n, *values in trials],
    }


def _or_none(nats: float) -> float | None:
    """Returns None for what diverged: JSON has no infinity."""
    return nats if math.isfinite(nats) else None
