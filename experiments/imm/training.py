"""Trains and evaluates one language model; returns its row of results."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import platform
import time
from typing import Any

import keras
import numpy as np

from experiments import run_files
from experiments.imm.config import RunConfig
from experiments.imm.counts import effective_counts
from rlm_tf import distribution, evaluation
from rlm_tf.data import Corpus, Noising, contiguous_batches
from rlm_tf.models import (
    InBatchContexts,
    InducedModelMatching,
    RecurrentLanguageModel,
    SampledContexts,
)
from rlm_tf.restricted import KneserNey
from rlm_tf.training import (
    DivergenceGuard,
    ExactResume,
    LearningRateHalving,
    MetricsLog,
    ResumableBatches,
    StartRule,
    read_metrics_log,
)

_CURVE = (
    "epoch",
    "learning_rate",
    "perplexity",
    "val_perplexity",
    "imm",
    "imm_count",
    "imm_coverage",
)


def train(
    config: RunConfig,
    corpus: Corpus,
    folder: pathlib.Path,
    *,
    strategy: str = "default",
    resume: bool = True,
) -> dict[str, Any]:
    """Trains one model into `folder` and returns its row.

    A run that was killed goes on from its last checkpoint. Besides checkpoints the
    folder gets config.json, metrics.jsonl, TensorBoard logs, model.keras and
    vocabulary.txt.
    """
    run_files.write_json(folder / "config.json", dataclasses.asdict(config))
    keras.utils.set_random_seed(config.seed)
    vocabulary_size = len(corpus.vocabulary)
    text = corpus.train[: int(len(corpus.train) * config.fraction)]
    # Every model is also interpolated with each of the two, for a fair comparison.
    n_grams = {
        name: KneserNey(config.restricted_order).fit(tokens, vocabulary_size)
        for name, tokens in {"same": text, "all": corpus.train}.items()
    }
    restricted = n_grams[config.restricted_text]
    eos = corpus.vocabulary.eos_id
    batches = contiguous_batches(text, config.batch_size, config.window, prefix=eos)
    valid = contiguous_batches(
        corpus.valid, config.batch_size, config.window, prefix=eos
    )
    scope = distribution.strategy(strategy)
    with scope.scope():
        model = build_model(config, vocabulary_size, corpus, text, restricted)
        model.compile(keras.optimizers.SGD(config.learning_rate))
    halving = LearningRateHalving(factor=config.decay, max_decays=config.max_decays)
    log = MetricsLog(folder / "metrics.jsonl", seconds=True)
    kept: list[keras.callbacks.Callback] = [
        log,
        run_files.TensorBoardScalars(folder / "tensorboard", log),
        halving,
        DivergenceGuard(recover=True, best=halving.best),
    ]
    if config.uses_imm and config.start_perplexity is not None:
        kept.append(
            StartRule(config.start_perplexity, learning_rate=config.start_learning_rate)
        )
    data = ResumableBatches(batches, transform=_noise(config, text, vocabulary_size))
    saver = ExactResume(folder / "checkpoints", data, kept, resume=resume)
    model.fit(
        data.dataset,
        epochs=config.epochs,
        shuffle=False,
        validation_data=valid.dataset(),
        callbacks=[saver, run_files.EpochProgress(config.name, config.epochs)],
        verbose=0,
    )
    halving.best.restore(model)
    model.save(folder / "model.keras")
    corpus.vocabulary.save(folder / "vocabulary.txt")
    return _row(config, model, corpus, text, n_grams, folder)


def build_model(
    config: RunConfig,
    vocabulary_size: int,
    corpus: Corpus,
    text: np.ndarray,
    restricted: KneserNey,
) -> keras.Model:
    """Returns the language model of a run, wrapped if its arm is IMM."""
    # Published rates and clipping norms refer to losses summed over a window.
    options: dict[str, Any] = {
        "clip_norm": config.clip_norm,
        "loss_scale": float(config.window),
    }
    model = RecurrentLanguageModel(
        vocabulary_size + (config.arm == "noising-blank"),
        config.width,
        config.num_layers,
        dropout=config.dropout,
        seed=config.seed,
        **options,
    )
    if not config.uses_imm:
        return model
    contexts: InBatchContexts | SampledContexts
    if config.arm == "imm-in-batch":
        contexts = InBatchContexts(
            min_count=config.min_count,
            pass_mode=config.pass_mode,  # type: ignore[arg-type]
            separate_clipping=config.separate_clipping,
            bank_size=config.bank_size,
            bank_target=config.bank_target,
        )
        return InducedModelMatching(
            model, restricted, contexts, config.coefficient, **options
        )
    contexts = SampledContexts(
        text,
        config.k,
        config.window,
        truncated=config.variant == "authors",
        seed=config.seed,
    )
    return InducedModelMatching(
        model,
        restricted,
        contexts,
        config.coefficient,
        config.every,
        config.gradient,  # type: ignore[arg-type]
        variant=config.variant,  # type: ignore[arg-type]
        **options,
    )


def _noise(config: RunConfig, text: np.ndarray, vocabulary_size: int) -> Any:
    if not config.arm.startswith("noising-"):
        return None
    kind = config.arm.removeprefix("noising-")
    options: dict[str, Any] = {"gamma0": config.gamma0, "seed": config.seed}
    if kind == "blank":
        # One more id, which stands for "_" and is never predicted.
        return Noising(
            text, vocabulary_size + 1, kind="blank", blank_id=vocabulary_size, **options
        )
    if kind.startswith("bigram-kn"):
        discounting = "modified" if kind.endswith("modified") else "absolute"
        options |= {"kind": "bigram-kn", "discounting": discounting}
    else:
        options["kind"] = kind
    return Noising(text, vocabulary_size, **options)


def _row(
    config: RunConfig,
    model: keras.Model,
    corpus: Corpus,
    text: np.ndarray,
    n_grams: dict[str, KneserNey],
    folder: pathlib.Path,
) -> dict[str, Any]:
    eos = corpus.vocabulary.eos_id
    texts = {"valid": corpus.valid, "test": corpus.test}
    log_q = {
        name: evaluation.target_log_probs(
            model, tokens, config.batch_size, config.window, prefix=eos
        )
        for name, tokens in texts.items()
    }
    log_p = {
        source: {
            name: evaluation.restricted_target_log_probs(n_gram, tokens, prefix=eos)
            for name, tokens in texts.items()
        }
        for source, n_gram in n_grams.items()
    }
    induced = evaluation.induced_perplexity(
        model,
        text,
        {"train": text, **texts},
        config.batch_size,
        config.window,
        prefix=eos,
    )
    log = read_metrics_log(folder / "metrics.jsonl")
    batches = contiguous_batches(text, config.batch_size, config.window, prefix=eos)

    def perplexities(log_probs: dict[str, np.ndarray]) -> dict[str, float | None]:
        return {
            name: _finite(evaluation.perplexity_of(values).perplexity)
            for name, values in log_probs.items()
        }

    def interpolation(source: str) -> dict[str, float | None]:
        mu = evaluation.tune_interpolation(log_q["valid"], log_p[source]["valid"])
        mixed = {
            name: evaluation.interpolate(log_q[name], log_p[source][name], mu)
            for name in texts
        }
        return {"mu": mu, **perplexities(mixed)}

    return {
        "name": config.name,
        "command": config.command,
        "commit": run_files.commit(),
        "config": dataclasses.asdict(config),
        "corpus": {
            "name": corpus.name,
            "train_tokens": len(text),
            "vocabulary": len(corpus.vocabulary),
        },
        "perplexity": perplexities(log_q),
        "restricted_perplexity": {
            source: {name: _over_possible(values) for name, values in each.items()}
            for source, each in log_p.items()
        },
        "interpolation": {source: interpolation(source) for source in n_grams},
        "induced_perplexity": {
            name: {
                "perplexity": result.perplexity,
                "tokens": result.num_tokens,
                "left_out": result.num_left_out,
            }
            for name, result in induced.items()
        },
        "parameters": int(sum(np.prod(v.shape) for v in model.trainable_variables)),
        "epochs": len(log),
        "steps_per_epoch": batches.steps,
        "effective_counts": effective_counts(
            batches,
            config.restricted_order - 1,
            len(corpus.vocabulary),
            config.bank_size,
            config.bank_target or config.min_count,
        ),
        "seconds": log[-1].get("seconds") if log else None,
        "curve": [{key: row[key] for key in _CURVE if key in row} for row in log],
        "machine": f"{platform.machine()}, {run_files.cpu_count()} cores",
        "finished": time.strftime("%Y-%m-%d"),
    }


def _over_possible(log_probs: np.ndarray) -> dict[str, float | int]:
    """Perplexity over tokens of non-zero probability, and how many others there are."""
    possible = log_probs[np.isfinite(log_probs)]
    return {
        "perplexity": evaluation.perplexity_of(possible).perplexity,
        "tokens": len(possible),
        "impossible": len(log_probs) - len(possible),
    }


def _finite(value: float) -> float | None:
    """JSON has no infinity; n-grams may give a word no probability at all."""
    return value if np.isfinite(value) else None


def read_row(path: pathlib.Path) -> dict[str, Any]:
    """Returns a row that `train` has returned and somebody has written."""
    return json.loads(path.read_text("utf-8"))
