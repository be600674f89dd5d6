"""Trains one encoder-decoder on the reverse copy task."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import time
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from experiments.kit import machine, run_files
from experiments.kit import recurrent_config as mogrifier_config
from experiments.kit.grids import command_of
from experiments.kit.recurrent_model import make_cell
from experiments.kit.run_list import Run
from experiments.reverse_copy.config import GRID, CopyConfig
from experiments.reverse_copy.report import NEEDS
from rlm_tf.averaging import TriggeredAverage, WeightAveraging
from rlm_tf.command_line.json_files import write_json
from rlm_tf.data import ReverseCopy
from rlm_tf.file_errors import naming
from rlm_tf.models import EncoderDecoder, count_parameters, width_for_budget
from rlm_tf.training import (
    DivergenceGuard,
    ExactResume,
    MetricsLog,
    ResumableBatches,
    TrainingDivergedError,
    read_metrics_log,
)


class CopyRun(NamedTuple):
    """A run that may begin.

    Attributes:
        config: The grid that it belongs to.
        cell: "lstm", "rlstm" or "mogrifier".
        length: Of the sequences.
        rate: The learning rate.
        seed: Of everything drawn.
    """

    config: CopyConfig
    cell: str
    length: int
    rate: float
    seed: int

    def settings(self) -> dict[str, Any]:
        """Returns what identifies the run."""
        return {
            **dataclasses.asdict(self.config),
            "cells": self.cell,
            "lengths": self.length,
            "learning_rates": self.rate,
            "seed": self.seed,
        }


def runs_of(config: CopyConfig, seeds: list[int]) -> list[Run]:
    """Returns the runs of a grid."""
    runs = [
        CopyRun(config, cell, length, rate, seed)
        for length in config.lengths
        for cell in config.cells
        for rate in config.learning_rates
        for seed in seeds
    ]
    return [
        Run(
            f"{run.cell}-length{run.length}-rate{run.rate:g}-seed{run.seed}",
            run.settings(),
            functools.partial(prepare, run),
            functools.partial(train, run),
            NEEDS,
        )
        for run in runs
    ]


def build_model(run: CopyRun, units: int) -> EncoderDecoder:
    """Returns the model of a run with cells of a given width."""
    config = run.config
    mogrifier = run.cell == "mogrifier"
    settings = mogrifier_config.RunConfig(
        cell="lstm" if mogrifier else run.cell,
        rounds=config.rounds if mogrifier else 0,
        rank=config.rank,
        seed=run.seed,
    )
    ratio = config.mogrifier_ratio if mogrifier else config.embedding_ratio
    task = ReverseCopy(run.length, config.num_tokens)
    return EncoderDecoder(
        task.vocabulary_size,
        make_cell(settings, units),
        embedding_width=max(1, round(ratio * units)) if ratio < 1 else None,
        seed=run.seed,
        clip_norm=config.clip_norm,
        loss_scale=float(run.length + 1),
        l2=config.l2,
    )


def prepare(run: CopyRun) -> EncoderDecoder:
    """Returns the compiled model, the widest that the budget allows.

    Raises:
        ValueError: If the budget allows none.
    """
    keras.utils.set_random_seed(run.seed)
    width = width_for_budget(
        run.config.budget, lambda units: build_model(run, units), 4
    )
    model = build_model(run, width)
    model.compile(keras.optimizers.Adam(run.rate, beta_1=0.0, epsilon=1e-8))
    return model


def train(run: CopyRun, model: EncoderDecoder, folder: pathlib.Path) -> dict[str, Any]:
    """Trains a model, the best of its evaluations kept, and returns its row.

    Averaging begins when validation has not improved for a tenth of the evaluations,
    after 80 % of the steps at the latest.
    """
    write_json(folder / "config.json", run.settings())
    config = run.config
    task = ReverseCopy(run.length, config.num_tokens)
    every = config.steps // config.evaluations
    batches = config.train_examples // config.batch_size
    examples = task.dataset("train", config.train_examples, config.batch_size)

    def one_epoch(epoch: tf.Tensor, start: tf.Tensor) -> tf.data.Dataset:
        """Steps between two evaluations; examples come again when all were seen."""
        first = (epoch * every + start) % batches
        rest = task.dataset("train", config.train_examples, config.batch_size, first)
        return rest.concatenate(examples.repeat()).take(every - start)

    valid = task.dataset("valid", config.eval_examples, config.batch_size)
    average = TriggeredAverage(
        max(1, config.evaluations // 10), max(1, int(0.8 * config.steps))
    )
    averaging = WeightAveraging(average, valid, monitor="nll")
    data = ResumableBatches(one_epoch, steps=every)
    log = MetricsLog(folder / "metrics.jsonl", seconds=True)
    timer = run_files.StepTimer()
    guard = DivergenceGuard(
        recover=True,
        factor=0.9,
        max_recoveries=10,
        monitor="averaged_loss",
        also=[averaging],
    )
    saver = ExactResume(folder / "checkpoints", data, [timer, averaging, log, guard])
    row = {
        "name": folder.name,
        "command": command_of(
            GRID,
            config,
            run.seed,
            cells=run.cell,
            lengths=run.length,
            learning_rates=f"{run.rate:g}",
        ),
        "cell": run.cell,
        "length": run.length,
        "learning_rate": run.rate,
        "seed": run.seed,
        "width": model.cell.output_size,
        "embedding_width": model.embedding_width or model.cell.output_size,
        "parameters": count_parameters(model),
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
    }
    progress = run_files.EpochProgress(folder.name, config.evaluations)
    try:
        with run_files.interruptible(saver):
            model.fit(
                data.dataset,
                epochs=config.evaluations,
                shuffle=False,
                callbacks=[saver, progress],
                verbose=0,
            )
        with averaging.best(model):
            losses = {
                split: float(
                    model.evaluate(
                        task.dataset(split, config.eval_examples, config.batch_size),
                        verbose=0,
                        return_dict=True,
                    )["nll"]
                )
                for split in ("valid", "test")
            }
            run_files.check_converged(nats_per_token=losses)
            right = _share_of_right_sequences(model, task, config)
            with naming(folder / "model.keras"):
                model.save(folder / "model.keras")
    except TrainingDivergedError as error:
        # The others of the grid go on.
        print(f"{folder.name}: {error}", flush=True)
        return {**row, "diverged": str(error), "finished": time.strftime("%Y-%m-%d")}
    return {
        **row,
        "nats_per_token": losses,
        "whole_sequences_right": right,
        "curve": [row["loss"] for row in averaging.evaluations],
        "recoveries": guard.recoveries,
        "seconds": read_metrics_log(log.path)[-1]["seconds"],
        **timer.result(),
        "finished": time.strftime("%Y-%m-%d"),
    }


def _share_of_right_sequences(
    model: EncoderDecoder, task: ReverseCopy, config: CopyConfig
) -> float:
    """Returns the share of test examples that are said without a mistake."""

    @tf.function(autograph=False)
    def right(source: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        said = model.greedy(source, task.marker, task.length + 1)
        return tf.reduce_all(tf.equal(said, targets), axis=1)

    data = task.dataset("test", config.eval_examples, config.batch_size)
    return float(
        np.mean([right(source, targets).numpy() for (source, _), targets in data])
    )
