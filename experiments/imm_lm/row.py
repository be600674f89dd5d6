"""What a trained language model of a study is worth: its row of results."""

from __future__ import annotations

import dataclasses
import pathlib
import platform
import time
from typing import Any, NamedTuple

import keras
import numpy as np

from experiments.imm_lm.config import RunConfig
from experiments.imm_lm.counts import effective_counts
from experiments.kit import machine
from experiments.kit.run_files import check_converged
from experiments.kit.run_settings import text_digest
from experiments.kit.scores import comparable, line_of
from rlm_tf import evaluation
from rlm_tf.data import Corpus, contiguous_batches
from rlm_tf.restricted import KneserNey
from rlm_tf.training import read_metrics_log

_CURVE = (
    "epoch",
    "learning_rate",
    "perplexity",
    "val_perplexity",
    "imm",
    "imm_count",
    "imm_coverage",
)


class Prepared(NamedTuple):
    """A run that may begin.

    Attributes:
        config: Its settings.
        corpus: Its corpus.
        text: The part of the training text that is used.
        n_grams: Kneser-Ney models of that part ("same") and of the whole ("all").
        model: The compiled model.
    """

    config: RunConfig
    corpus: Corpus
    text: np.ndarray
    n_grams: dict[str, KneserNey]
    model: keras.Model


def row_of(prepared: Prepared, folder: pathlib.Path) -> dict[str, Any]:
    """Evaluates a trained model, whose metrics are in `folder`."""
    config, corpus, text, n_grams, model = prepared
    eos = corpus.vocabulary.eos_id
    texts = {"valid": corpus.valid, "test": corpus.test}
    log_q = {
        name: evaluation.target_log_probs(
            model,
            tokens,
            config.batch_size,
            config.window,
            prefix=eos,
            progress=f"{config.name}: {name}",
        )
        for name, tokens in texts.items()
    }
    log_p = {
        source: {
            name: evaluation.restricted_target_log_probs(n_gram, tokens, prefix=eos)
            for name, tokens in {"train": text, **texts}.items()
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
        progress=f"{config.name}: induced model",
    )
    log = read_metrics_log(folder / "metrics.jsonl")
    batches = contiguous_batches(text, config.batch_size, config.window, prefix=eos)

    def perplexities(log_probs: dict[str, np.ndarray]) -> dict[str, float]:
        return {
            name: evaluation.perplexity_of(values).perplexity
            for name, values in log_probs.items()
        }

    def interpolation(source: str) -> dict[str, float]:
        mu = evaluation.tune_interpolation(log_q["valid"], log_p[source]["valid"])
        mixed = {
            name: evaluation.interpolate(log_q[name], log_p[source][name], mu)
            for name in texts
        }
        return {"mu": mu, **perplexities(mixed)}

    perplexity = perplexities(log_q)
    check_converged(perplexity=perplexity)
    # N-grams may give a word no probability at all: that is no divergence.
    mixed = {source: interpolation(source) for source in n_grams}
    if config.arm == "interpolation":
        perplexity = {name: mixed[config.restricted_text][name] for name in texts}
    scores = comparable(corpus, perplexity)
    print(line_of(config.name, perplexity, scores), flush=True)
    counts = None
    if config.arm == "imm-in-batch":
        counts = effective_counts(
            batches,
            config.restricted_order - 1,
            len(corpus.vocabulary),
            config.bank_size,
            config.bank_target or config.min_count,
        )
    return {
        "name": config.name,
        "command": config.command,
        "commit": machine.commit(),
        "config": dataclasses.asdict(config),
        "corpus": {
            "name": corpus.name,
            "train_tokens": len(text),
            "vocabulary": len(corpus.vocabulary),
            "text_sha256": text_digest(corpus),
        },
        "perplexity": perplexity,
        **scores,
        "restricted_perplexity": {
            source: {name: _over_possible(values) for name, values in each.items()}
            for source, each in log_p.items()
        },
        "interpolation": mixed,
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
        "effective_counts": counts,
        "seconds": log[-1].get("seconds") if log else None,
        "curve": [{key: row[key] for key in _CURVE if key in row} for row in log],
        "machine": f"{platform.machine()}, {machine.cores()} cores",
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
