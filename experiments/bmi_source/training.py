"""Trains a language model on sentences of a known source, and judges it."""

from __future__ import annotations

import functools
import pathlib
import time
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from experiments.bmi_source import n_gram
from experiments.bmi_source.config import ARMS, GRID, SourceConfig
from experiments.bmi_source.counting import counted_information, markers_of
from experiments.bmi_source.probing import topics_found
from experiments.bmi_source.report import NEEDS
from experiments.bmi_source.source_run import SourceRun
from experiments.kit import machine, run_files
from experiments.kit.grids import command_of
from experiments.kit.run_list import Run
from rlm_tf.averaging import TwoTailedAveraging
from rlm_tf.command_line.json_files import write_json
from rlm_tf.data import SentencePairs, contiguous_batches
from rlm_tf.evaluation import model_information, target_log_probs
from rlm_tf.generation import generate
from rlm_tf.layers import LSTMCell, PairDiscriminator
from rlm_tf.models import BootstrappedMutualInformation, RegularizedLanguageModel
from rlm_tf.optimizers import DecoupledOptimizer
from rlm_tf.training import (
    HeldOutPairs,
    LearningRateHalving,
    MetricsLog,
    NoGain,
    ResumableBatches,
    SwitchPhase,
    read_metrics_log,
)

_SAID_ROWS = 100
# Of held-out pairs that the discriminator is looked at on.
_HELD_BATCHES = 50


def runs_of(config: SourceConfig, seeds: list[int]) -> list[Run]:
    """Returns the runs of a grid."""
    runs = [
        SourceRun(config, length, sentences, arm, seed)
        for length in config.sentence_lengths
        for sentences in config.sentences
        for arm in config.arms
        for seed in seeds
    ]
    return [
        Run(
            f"length{run.length}-{run.sentences}-{run.arm}-seed{run.seed}",
            run.settings,
            functools.partial(n_gram.count if counted else prepare, run),
            functools.partial(n_gram.score if counted else train, run),
            NEEDS,
        )
        for run in runs
        for counted in [run.arm == "n-gram"]
    ]


class Prepared(NamedTuple):
    """Model and batches of a run.

    Attributes:
        model: Compiled.
        data: To train on.
    """

    model: keras.Model
    data: ResumableBatches


def prepare(run: SourceRun) -> Prepared:
    """Returns the compiled model of a run, and its batches."""
    config, text = run.config, run.text
    keras.utils.set_random_seed(run.seed)
    model: keras.Model = RegularizedLanguageModel(
        run.source.vocabulary_size,
        LSTMCell(config.units),
        1,
        output_dropout=config.dropout,
        seed=run.seed,
    )
    windows = contiguous_batches(text, config.batch_size, config.window, prefix=0)
    if run.arm in ("none", "none-patient"):
        data = ResumableBatches(windows)
    else:
        pairs = SentencePairs(
            text if ARMS[run.arm].get("paired", True) else _shuffled(text, run.seed),
            0,
            config.pairs,
            most_tokens=run.length + 1,
            seed=run.seed,
        )
        data = ResumableBatches(windows, transform=pairs)
        model = _regularised(run, model, windows.steps)
    model.compile(_optimizer(config, has_bmi=run.arm not in ("none", "none-patient")))
    return Prepared(model, data)


def _optimizer(config: SourceConfig, has_bmi: bool) -> keras.optimizers.Optimizer:
    """Returns gradient descent, which clips no language model, with BMI or without."""
    descent = keras.optimizers.SGD(config.learning_rate)
    if not has_bmi:
        return descent
    critic = keras.optimizers.Adam(2e-4, epsilon=1e-8)
    return DecoupledOptimizer(
        {"model": descent, "discriminator": critic}, {"discriminator": 0.25}
    )


def _regularised(run: SourceRun, model: keras.Model, steps: int) -> keras.Model:
    config, arm = run.config, ARMS[run.arm]
    weight: Any = config.weak_weight if arm.get("weight") == "weak" else config.weight
    if arm.get("annealed"):
        weight = keras.optimizers.schedules.ExponentialDecay(
            weight, config.half_life * steps, 0.5
        )
    return BootstrappedMutualInformation(
        model,
        discriminator=PairDiscriminator(config.discriminator_units, seed=run.seed),
        weight=weight,
        raml_weight=config.weak_weight,
        pooling=arm.get("pooling", "max"),
        phase_two=arm.get("phase_two"),
        end_id=0,
    )


def _shuffled(text: np.ndarray, seed: int) -> np.ndarray:
    """Returns the sentences of a text in random order."""
    sentences = np.split(text, np.flatnonzero(text == 0)[:-1] + 1)
    order = np.random.default_rng(seed).permutation(len(sentences))
    return np.concatenate([sentences[place] for place in order])


def train(run: SourceRun, prepared: Prepared, folder: pathlib.Path) -> dict[str, Any]:
    """Trains until the averaged weights no longer gain; returns the row."""
    config, model = run.config, prepared.model
    write_json(folder / "config.json", run.settings)
    valid = run.valid
    averaging = TwoTailedAveraging(_windows(valid), monitor="nll")
    log = MetricsLog(folder / "metrics.jsonl", seconds=True)
    patience = config.stop * (10 if ARMS[run.arm].get("patient") else 1)
    stop = LearningRateHalving(
        "averaged_loss", max_decays=0, reload_best=False, patience=patience
    )
    callbacks: list[keras.callbacks.Callback] = [averaging, log, stop]
    if ARMS[run.arm].get("paired", "none" not in run.arm):
        held = SentencePairs(valid, 0, config.pairs, most_tokens=run.length + 1)
        callbacks.insert(1, HeldOutPairs(held, _HELD_BATCHES))
    if ARMS[run.arm].get("phase_two"):
        no_gain = NoGain("averaged_raw_loss", config.patience)
        callbacks.append(SwitchPhase(no_gain))
    run_files.fit_resumably(
        model, prepared.data, folder, config.most_epochs, callbacks, 60.0
    )
    epochs = read_metrics_log(log.path)
    losses = [epoch["averaged_loss"] for epoch in epochs]
    best = int(np.argmin(losses))
    with averaging.best(model):
        judged = judge(run, model)
    return {
        "name": folder.name,
        "command": command_of(GRID, config, run.seed, **run.chosen),
        "sentence_length": run.length,
        "sentences": run.sentences,
        "arm": run.arm,
        "seed": run.seed,
        **judged,
        "valid_nll": losses[best],
        "best_epoch": best + 1,
        "seconds_to_best": epochs[best]["seconds"],
        "epochs": len(epochs),
        "seconds": epochs[-1]["seconds"],
        "phase_two_from": _phase_two_from(epochs),
        "valid_curve": losses,
        "raw_curve": [epoch["averaged_raw_loss"] for epoch in epochs],
        "pair_accuracy": epochs[best].get("pair_accuracy"),
        "held_out_pair_accuracy": epochs[best].get("val_pair_accuracy"),
        "held_out_mine": epochs[best].get("val_mine"),
        "effective_sample_size": epochs[best].get("effective_sample_size"),
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
        "finished": time.strftime("%Y-%m-%d"),
    }


def _phase_two_from(epochs: list[dict[str, Any]]) -> int | None:
    """Returns the first epoch, from 1, in whose steps there was a second phase."""
    numbers = (n for n, epoch in enumerate(epochs, 1) if epoch.get("reward"))
    return next(numbers, None)


def judge(run: SourceRun, model: keras.Model) -> dict[str, Any]:
    """Returns what a model is worth, beside what no model exceeds."""
    config, source, test = run.config, run.source, run.test
    found = target_log_probs(model, test, 20, 100, prefix=0)
    rows = min(_SAID_ROWS, config.said_sentences // 2)
    each = config.said_sentences // rows * (run.length + 1)
    said = generate(model, tf.zeros([rows, 1], tf.int32), each, seed=run.seed)
    markers = markers_of([*said.to_tensor().numpy()], source.num_topics)
    sandwich = model_information(
        model,
        segment=run.length + 1,
        pairs=config.sandwich_pairs,
        prefix=0,
        seed=run.seed,
    )
    return {
        **run.judge(found),
        "information": source.information(),
        "counted": counted_information(markers, source.num_topics + 1),
        "counted_text": counted_information(
            markers_of([test], source.num_topics), source.num_topics + 1
        ),
        "sandwich": sandwich._asdict(),
        "topics_found": topics_found(model, test, source.num_topics, run.length),
    }


def _windows(text: np.ndarray) -> tf.data.Dataset:
    return contiguous_batches(text, 20, 100, prefix=0).dataset()
