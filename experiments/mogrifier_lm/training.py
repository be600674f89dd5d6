"""Trains one language model of `experiments.mogrifier_lm`."""

from __future__ import annotations

import dataclasses
import pathlib
import platform
import time
from typing import Any, NamedTuple

import keras
import numpy as np

from experiments.kit import machine, run_files
from experiments.kit.recurrent_config import RunConfig
from experiments.kit.recurrent_model import build_model, width_of
from experiments.kit.run_settings import (
    settings_of,
    strategy_for,
    text_digest,
    training_text,
)
from experiments.kit.scores import comparable, line_of
from experiments.mogrifier_lm.analysis import analyse
from rlm_tf import averaging, evaluation
from rlm_tf.command_line.json_files import write_json
from rlm_tf.data import ContiguousBatches, Corpus, contiguous_batches
from rlm_tf.file_errors import naming
from rlm_tf.models import (
    InBatchContexts,
    InducedModelMatching,
    count_parameters,
)
from rlm_tf.models.language.interface import language_model_of
from rlm_tf.optimizers import RectifiedAdam
from rlm_tf.restricted import KneserNey
from rlm_tf.training import (
    DivergenceGuard,
    MetricsLog,
    ResumableBatches,
    read_metrics_log,
)


class Prepared(NamedTuple):
    """A run that may begin.

    Attributes:
        config: Its settings.
        corpus: Its corpus.
        text: The part of the training text that is used.
        batches: The same in batches.
        width: Width of its layers.
        model: The compiled model, wrapped if it matches an induced model.
    """

    config: RunConfig
    corpus: Corpus
    text: np.ndarray
    batches: ContiguousBatches
    width: int
    model: keras.Model


def prepare(config: RunConfig, corpus: Corpus, strategy: str = "default") -> Prepared:
    """Builds everything that a run needs, and writes nothing.

    Raises:
        ValueError: If settings are impossible or do not fit the corpus.
    """
    keras.utils.set_random_seed(config.seed)
    size = len(corpus.vocabulary)
    text = training_text(corpus, config.fraction, config.batch_size)
    batches = contiguous_batches(
        text, config.batch_size, config.window, prefix=corpus.vocabulary.eos_id
    )
    if config.period > batches.steps * config.epochs:
        raise ValueError(
            f"--period={config.period} is more than the {batches.steps} steps an epoch "
            f"times --epochs={config.epochs}: no weights would ever be evaluated."
        )
    width = width_of(config, size)
    with strategy_for(config.batch_size, strategy).scope():
        model: keras.Model = build_model(config, size, width)
        if config.coefficient:
            model = InducedModelMatching(
                model,
                KneserNey(2).fit(text, size),
                InBatchContexts(),
                config.coefficient,
                clip_norm=config.clip_norm,
                loss_scale=float(config.window),
                l2=config.l2,
            )
        model.compile(make_optimizer(config))
    return Prepared(config, corpus, text, batches, width, model)


def make_optimizer(config: RunConfig) -> keras.optimizers.Optimizer:
    """Returns the optimiser of a run; the adaptive ones have no momentum."""
    if config.optimizer == "adam":
        return keras.optimizers.Adam(config.learning_rate, beta_1=0.0, epsilon=1e-8)
    if config.optimizer == "radam":
        return RectifiedAdam(config.learning_rate, beta_1=0.0)
    return keras.optimizers.SGD(config.learning_rate)


def train(
    prepared: Prepared,
    folder: pathlib.Path,
    checkpoint_seconds: float = 120.0,
) -> dict[str, Any]:
    """Trains a model; in the end it has the weights of its best evaluation.

    A run that was killed goes on from its last checkpoint. Besides checkpoints the
    folder gets config.json, metrics.jsonl, TensorBoard logs, model.keras (with the best
    weights, averaged or not) and vocabulary.txt.

    Args:
        prepared: What `prepare` returned.
        folder: Where it is trained.
        checkpoint_seconds: Within an epoch, a checkpoint is written when the last is
            this old.

    Returns:
        The row of results.

    Raises:
        TrainingDivergedError: If it does.
    """
    config, corpus, text, batches, width, model = prepared
    write_json(folder / "config.json", settings_of(config, corpus))
    eos = corpus.vocabulary.eos_id
    valid = contiguous_batches(
        corpus.valid, config.batch_size, config.window, prefix=eos
    ).dataset()
    averages = averaging_of(config, valid, batches.steps)
    log = MetricsLog(folder / "metrics.jsonl", seconds=True)
    guard = DivergenceGuard(
        recover=config.recover,
        factor=0.9,
        max_recoveries=10,
        # A period longer than an epoch leaves the first epochs without an evaluation.
        monitor="averaged_loss" if config.period <= batches.steps else None,
        also=[averages],
    )
    timer = run_files.StepTimer(averages)
    kept: list[keras.callbacks.Callback] = [
        timer,
        averages,
        log,
        run_files.TensorBoardScalars(folder / "tensorboard", log),
        guard,
    ]
    if config.stop_after:
        kept.append(
            keras.callbacks.EarlyStopping(
                "averaged_loss", patience=config.stop_after, mode="min"
            )
        )
    data = ResumableBatches(batches)
    run_files.fit_resumably(
        model, data, folder, config.epochs, kept, checkpoint_seconds
    )
    with averages.best(model):
        with naming(folder / "model.keras"):
            model.save(folder / "model.keras")
        corpus.vocabulary.save(folder / "vocabulary.txt")
        perplexity = {
            name: evaluation.evaluate(
                model, tokens, config.batch_size, config.window, prefix=eos
            ).perplexity
            for name, tokens in (("valid", corpus.valid), ("test", corpus.test))
        }
        run_files.check_converged(perplexity=perplexity)
        scores = comparable(corpus, perplexity)
        print(line_of(folder.name, perplexity, scores), flush=True)
        evidence = analyse(language_model_of(model), corpus, text)
    raw = evaluation.evaluate(
        model, corpus.valid, config.batch_size, config.window, prefix=eos
    )
    rows = read_metrics_log(folder / "metrics.jsonl")
    curve = ("epoch", "perplexity", "averaged_loss", "averaged_raw_loss")
    return {
        "name": folder.name,
        "command": command_of(config),
        "commit": machine.commit(),
        "config": dataclasses.asdict(config),
        "corpus": {
            "name": corpus.name,
            "train_tokens": len(text),
            "vocabulary": len(corpus.vocabulary),
            "text_sha256": text_digest(corpus),
        },
        "width": width,
        "parameters": count_parameters(model),
        "perplexity": perplexity,
        **scores,
        "raw_valid_perplexity": raw.perplexity,
        "evidence": evidence,
        "recoveries": guard.recoveries,
        "epochs": len(rows),
        "steps_per_epoch": batches.steps,
        "seconds": rows[-1].get("seconds") if rows else None,
        "curve": [{key: row[key] for key in curve if key in row} for row in rows],
        "evaluations": averages.evaluations,
        **timer.result(),
        "machine": f"{platform.machine()}, {machine.cores()} cores",
        "finished": time.strftime("%Y-%m-%d"),
    }


def averaging_of(
    config: RunConfig, loss: Any, steps_per_epoch: int
) -> averaging.WeightAveraging:
    """Returns the callback that averages weights and keeps the best of them."""
    options: dict[str, Any] = {"monitor": "nll", "every_steps": config.period or None}
    if config.averaging == "2ta":
        return averaging.TwoTailedAveraging(loss, patience=config.patience, **options)
    steps = steps_per_epoch * config.epochs
    if config.averaging == "trigger":
        average = averaging.TriggeredAverage(config.trigger, max(1, int(0.8 * steps)))
    else:
        # Nothing is ever averaged: the best weights are those of the best evaluation.
        average = averaging.TriggeredAverage(steps + 1, steps + 1)
    return averaging.WeightAveraging(average, loss, **options)


def command_of(config: RunConfig) -> str:
    """Returns the command of a run, but for the folders it reads and writes."""
    default = RunConfig()
    given = ["python -m experiments.mogrifier_lm --preset=default"]
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name != "seed" and value != getattr(default, field.name):
            given.append(f"--{field.name}={value}")
    return " ".join([*given, f"--seeds={config.seed}"])
