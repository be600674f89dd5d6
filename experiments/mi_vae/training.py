"""Trains and evaluates one latent-variable model."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from experiments.kit import machine, run_files
from experiments.kit.run_list import Run
from experiments.kit.run_settings import settings_of, strategy_for, training_text
from experiments.kit.timing import elapsed, train_function_step
from experiments.kit.vae_config import VaeConfig
from experiments.kit.vae_model import build_model
from experiments.mi_vae.report import NEEDS
from rlm_tf.command_line.json_files import write_json
from rlm_tf.data import Corpus, SentenceBatches, UniformSymbols, Vocabulary
from rlm_tf.evaluation import LatentUsage, latent_usage, quantised_usage
from rlm_tf.file_errors import naming
from rlm_tf.models import MonteCarloVAE, VectorQuantizedVAE, count_parameters
from rlm_tf.training import (
    DivergenceGuard,
    MetricsLog,
    ResumableBatches,
    read_metrics_log,
)

Texts = Callable[[], Iterable[np.ndarray]]


class Prepared(NamedTuple):
    """A run that may begin.

    Attributes:
        config: Its settings.
        settings: What identifies it.
        model: Compiled.
        data: Of training; `every` steps are an epoch.
        texts: What is evaluated, by name: functions that return batches.
        vocabulary: Of sentences.
    """

    config: VaeConfig
    settings: dict[str, Any]
    model: MonteCarloVAE | VectorQuantizedVAE
    data: ResumableBatches
    texts: dict[str, Texts]
    vocabulary: Vocabulary | None


def run_of(
    name: str,
    config: VaeConfig,
    corpus: Corpus | None,
    strategy: str,
    checkpoint_seconds: float,
    train: Callable[..., dict[str, Any]],
) -> Run:
    """Returns a run for `run_all`; `train` is the function here, or one like it."""
    settings = dataclasses.asdict(config)
    if corpus is not None:
        settings = settings_of(config, corpus)
    return Run(
        name,
        settings,
        functools.partial(prepare, config, corpus, strategy),
        functools.partial(train, checkpoint_seconds=checkpoint_seconds),
        NEEDS,
    )


def prepare(
    config: VaeConfig, corpus: Corpus | None = None, strategy: str = "default"
) -> Prepared:
    """Builds everything that a run needs, and writes nothing.

    Raises:
        ValueError: If settings are impossible.
    """
    keras.utils.set_random_seed(config.seed)
    every = config.steps // config.epochs
    if corpus is None:
        size, end_id = config.num_symbols, 0
        symbols = UniformSymbols(size, config.batch_size, every, config.seed)
        data = ResumableBatches(symbols.dataset, steps=every)
        texts: dict[str, Texts] = {"train": functools.partial(_all_symbols, config)}
        settings = dataclasses.asdict(config)
    else:
        size, end_id = len(corpus.vocabulary), corpus.vocabulary.eos_id
        cut = training_text(corpus, config.fraction, config.batch_size)
        sentences = {
            name: SentenceBatches(
                text, end_id, config.batch_size, config.most_tokens, config.seed
            )
            for name, text in (
                ("train", cut),
                ("valid", corpus.valid),
                ("test", corpus.test),
            )
        }
        data = ResumableBatches(_steps_of(sentences["train"], every), steps=every)
        texts = {
            name: functools.partial(s.in_order_of_length, config.eval_sentences or None)
            for name, s in sentences.items()
        }
        settings = settings_of(config, corpus)
    with strategy_for(config.batch_size, strategy).scope():
        model = build_model(config, size, end_id)
        model.compile(
            keras.optimizers.Adam(config.learning_rate, beta_1=0.0, epsilon=1e-8)
        )
    vocabulary = None if corpus is None else corpus.vocabulary
    return Prepared(config, settings, model, data, texts, vocabulary)


def _all_symbols(config: VaeConfig) -> Iterable[np.ndarray]:
    symbols = np.arange(config.num_symbols, dtype=np.int32)
    return np.array_split(symbols, -(-len(symbols) // config.batch_size))


def _steps_of(sentences: SentenceBatches, every: int) -> Any:
    """Returns epochs of `every` steps, which passes over the text follow in."""

    def one_epoch(epoch: Any, start: Any) -> Any:
        first = epoch * every + start
        passes = tf.data.Dataset.range(
            first // sentences.steps, (epoch + 1) * every // sentences.steps + 1
        )
        skipped = first % sentences.steps
        found = passes.flat_map(lambda number: sentences.dataset(number))
        return found.skip(skipped).take(every - start)

    return one_epoch


def train(
    prepared: Prepared, folder: pathlib.Path, checkpoint_seconds: float = 120.0
) -> dict[str, Any]:
    """Trains a model, evaluates it, and returns its row.

    A run that was killed goes on from its last checkpoint. The folder gets config.json,
    metrics.jsonl, TensorBoard logs, model.keras and, of sentences, vocabulary.txt.

    Raises:
        TrainingDivergedError: If it does.
    """
    config, settings, model, data, texts, vocabulary = prepared
    write_json(folder / "config.json", settings)
    log = MetricsLog(folder / "metrics.jsonl", seconds=True)
    timer = run_files.StepTimer()
    kept = [
        timer,
        log,
        run_files.TensorBoardScalars(folder / "tensorboard", log),
        DivergenceGuard(recover=False),
    ]
    run_files.fit_resumably(
        model, data, folder, config.epochs, kept, checkpoint_seconds
    )
    found = {
        name: _as_row(_usage(model, batches(), config.eval_samples))
        for name, batches in texts.items()
    }
    run_files.check_converged(evaluation=found)
    with naming(folder / "model.keras"):
        model.save(folder / "model.keras")
    if vocabulary is not None:
        vocabulary.save(folder / "vocabulary.txt")
    rows = read_metrics_log(log.path)
    names = ("objective", "bound", "kl", "representational_kl", "commitment")
    return {
        "command": command_of(config),
        "commit": machine.commit(),
        "config": dataclasses.asdict(config),
        "parameters": count_parameters(model),
        "evaluation": found,
        "curve": [{k: row[k] for k in names if k in row} for row in rows],
        "seconds": rows[-1].get("seconds") if rows else None,
        **timer.result(),
        "machine": machine.environment()["machine"],
        "finished": time.strftime("%Y-%m-%d"),
    }


def project(config: VaeConfig, corpus: Corpus | None, steps: int) -> dict[str, Any]:
    """Times a few steps and returns the hours that all steps of a run would take."""
    prepared = prepare(config, corpus)
    batches = list(prepared.data.dataset.take(4))
    step = train_function_step(prepared.model, [(x,) for x in batches])
    for _ in batches:
        step()
    seconds = float(np.median([elapsed(step) for _ in range(steps)]))
    return {
        "parameters": count_parameters(prepared.model),
        "step_seconds": seconds,
        "steps": config.steps,
        "hours_of_all_steps": seconds * config.steps / 3600,
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
    }


def _usage(
    model: MonteCarloVAE | VectorQuantizedVAE,
    batches: Iterable[np.ndarray],
    num_samples: int,
) -> LatentUsage:
    if isinstance(model, VectorQuantizedVAE):
        return quantised_usage(model, batches)
    return latent_usage(model, batches, num_samples)


def _as_row(found: LatentUsage) -> dict[str, Any]:
    return {**found._asdict(), "per_token": found.per_token()._asdict()}


def command_of(config: VaeConfig) -> str:
    """Returns the command of a run, but for folders."""
    default = VaeConfig()
    given = ["python -m experiments.mi_vae --preset=default"]
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name != "seed" and value != getattr(default, field.name):
            given.append(f"--{field.name}={value}")
    return " ".join([*given, f"--seeds={config.seed}"])
