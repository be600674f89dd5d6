"""Trains one model of the study: an AWD-LSTM, with BMI or without."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import time
from typing import Any, NamedTuple

import keras
import numpy as np

from experiments.bmi_lm.config import (
    ARMS,
    AUTHORS,
    GRID,
    TRIALS,
    LanguageConfig,
)
from experiments.bmi_lm.projecting import project
from experiments.bmi_lm.report import NEEDS
from experiments.kit import machine, run_files
from experiments.kit.grids import command_of
from experiments.kit.mixture_judge import MixtureJudge
from experiments.kit.run_list import Run
from experiments.kit.run_settings import text_digest, training_text
from rlm_tf.averaging import (
    AveragingBegins,
    TailAverage,
    TriggeredAverage,
    TwoTailedAveraging,
    WeightAveraging,
)
from rlm_tf.command_line.json_files import write_json
from rlm_tf.data import (
    Corpus,
    SentencePairs,
    VariableWindows,
    contiguous_batches,
    load_corpus,
)
from rlm_tf.file_errors import naming
from rlm_tf.layers import PairDiscriminator
from rlm_tf.models import (
    AWDLanguageModel,
    BootstrappedMutualInformation,
    count_parameters,
)
from rlm_tf.training import (
    HeldOutPairs,
    MetricsLog,
    ResumableBatches,
    SwitchPhase,
    read_metrics_log,
)

_EVALUATION_ROWS = 10


class LanguageRun(NamedTuple):
    """A run that may begin.

    Attributes:
        config: The grid that it belongs to, with the settings of the trial.
        arm: Of `ARMS`.
        trial: Of `TRIALS`.
        weight: Of BMI.
        seed: Of weights, dropout, windows and pairs.
    """

    config: LanguageConfig
    arm: str
    trial: str
    weight: float
    seed: int

    @property
    def chosen(self) -> dict[str, Any]:
        """What the run has of settings that are lists."""
        return {"arms": self.arm, "trials": self.trial, "weights": self.weight}

    @property
    def settings(self) -> dict[str, Any]:
        """What identifies the run; how long another arm trains does not."""
        settings = {**dataclasses.asdict(self.config), **self.chosen, "seed": self.seed}
        if not ARMS[self.arm].get("long"):
            settings |= {"long_epochs": None, "long_finetune_epochs": None}
        return settings

    @property
    def phases(self) -> int:
        """Of BMI; 0: none."""
        return ARMS[self.arm].get("phases", 0)

    @property
    def epochs(self) -> int:
        """Before finetuning."""
        long = ARMS[self.arm].get("long")
        return self.config.long_epochs if long else self.config.epochs

    @property
    def finetune_epochs(self) -> int:
        """Epochs of finetuning."""
        long = ARMS[self.arm].get("long")
        config = self.config
        return config.long_finetune_epochs if long else config.finetune_epochs


def runs_of(config: LanguageConfig, seeds: list[int]) -> list[Run]:
    """Returns the runs of a grid; arms without BMI have one weight."""
    runs = [
        LanguageRun(config, arm, trial, weight, seed)
        for trial in config.trials
        for weight in config.weights
        for seed in seeds
        for arm in config.arms
        if ARMS[arm].get("phases") or weight == config.weights[0]
    ]
    return [
        Run(
            _name(run),
            run.settings,
            functools.partial(prepare, run),
            functools.partial(train, run),
            NEEDS,
        )
        for run in runs
    ]


def _name(run: LanguageRun) -> str:
    weight = f"-weight{run.weight:g}" if run.phases else ""
    config = run.config
    kind = f"{config.corpus}-project" if config.project_steps else f"{run.epochs}epochs"
    if config.variant != "paper":
        kind += f"-{config.variant}"
    return f"{kind}-{run.trial}-{run.arm}{weight}-seed{run.seed}"


class Prepared(NamedTuple):
    """What a run needs.

    Attributes:
        corpus: The corpus.
        text: What is trained on.
        model: The language model, or BMI around it; compiled.
        data: Batches.
    """

    corpus: Corpus
    text: np.ndarray
    model: keras.Model
    data: ResumableBatches


def prepare(run: LanguageRun) -> Prepared:
    """Reads the corpus, and returns the compiled model of a run and its batches."""
    config = dataclasses.replace(run.config, **TRIALS[run.trial])
    keras.utils.set_random_seed(run.seed)
    corpus = load_corpus(config.corpus)
    text = training_text(corpus, config.fraction, config.batch_size)
    eos = corpus.vocabulary.eos_id
    windows = VariableWindows(
        text, config.batch_size, config.window, prefix=eos, seed=run.seed
    )
    model: keras.Model = AWDLanguageModel(
        len(corpus.vocabulary),
        embedding_width=config.embedding,
        units=config.units,
        mixture_components=config.mixture_components,
        weight_drop=config.weight_drop,
        word_dropout=config.word_dropout,
        input_dropout=config.input_dropout,
        layer_dropout=config.layer_dropout,
        output_dropout=config.output_dropout,
        projection_dropout=config.projection_dropout,
        base_window=config.window,
        seed=run.seed,
        clip_norm=config.clip_norm,
        l2=config.l2,
    )
    data = ResumableBatches(windows)
    if run.phases:
        model = regularised(run, model)
        pairs = SentencePairs(text, eos, config.pairs, seed=run.seed, tail=config.tail)
        data = ResumableBatches(windows, transform=pairs)
    model.compile(keras.optimizers.SGD(config.learning_rate))
    return Prepared(corpus, text, model, data)


def regularised(
    run: LanguageRun, model: AWDLanguageModel
) -> BootstrappedMutualInformation:
    """Returns BMI around a language model, by the text or as its authors have it."""
    config = run.config
    options: dict[str, Any] = {}
    if config.variant == "authors":
        own = dict(AUTHORS[config.corpus])
        options = {"raml_weight": own.pop("raml_weight"), "scale": "batch"}
        critic = PairDiscriminator(directions=2, order="authors", seed=run.seed, **own)
    else:
        critic = PairDiscriminator(config.discriminator_units, seed=run.seed)
    return BootstrappedMutualInformation(
        model,
        discriminator=critic,
        weight=run.weight,
        pooling=ARMS[run.arm].get("pooling", "max"),
        phase_two="raml" if run.phases == 2 else None,
        **options,
    )


def train(run: LanguageRun, prepared: Prepared, folder: pathlib.Path) -> dict[str, Any]:
    """Trains, finetunes and judges a model; returns its row."""
    corpus, text, model, data = prepared
    config = dataclasses.replace(run.config, **TRIALS[run.trial])
    write_json(folder / "config.json", run.settings)
    row = {
        "name": folder.name,
        "command": command_of(GRID, run.config, run.seed, **run.chosen),
        "arm": run.arm,
        "trial": run.trial,
        "weight": run.weight if run.phases else None,
        "seed": run.seed,
        "parameters": count_parameters(model.model if run.phases else model),
        "train_tokens": len(text),
        "corpus": {"name": corpus.name, "text_sha256": text_digest(corpus)},
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
    }
    if config.project_steps:
        found = project(model, data, config.project_steps, config.epochs)
        return {**row, **found, "finished": time.strftime("%Y-%m-%d")}
    judge = MixtureJudge(corpus, text)
    valid = _valid(corpus)
    first = WeightAveraging(
        TriggeredAverage(
            config.own_patience, max(1, data.steps * (run.epochs // 2)), rule="released"
        ),
        valid,
        monitor="nll",
    )
    pairs = SentencePairs(corpus.valid, corpus.vocabulary.eos_id, config.pairs)
    held = [HeldOutPairs(pairs)] if run.phases else []
    curve = _fit(run, model, data, folder, run.epochs, first, held, valid)
    stages: dict[str, Any] = {"curve": curve}
    with first.best(model):
        stages["scores"] = judge.scores(model)
        start = model.get_weights()
    if run.finetune_epochs:
        # From the best average on, with new averages and a new state of optimisers.
        model.set_weights(start)
        rate = config.learning_rate * config.finetune_ratio
        model.compile(keras.optimizers.SGD(rate))
        second = WeightAveraging(TailAverage(1), valid, monitor="nll")
        stages["finetune_curve"] = _fit(
            run,
            model,
            data,
            folder / f"{folder.name}-finetune",
            run.finetune_epochs,
            second,
            held,
            None,
        )
        with second.best(model):
            stages["finetuned"] = judge.scores(model)
            _save(model, folder)
    else:
        with first.best(model):
            _save(model, folder)
    return {**row, **stages, "finished": time.strftime("%Y-%m-%d")}


def _fit(
    run: LanguageRun,
    model: keras.Model,
    data: ResumableBatches,
    folder: pathlib.Path,
    epochs: int,
    averaging: WeightAveraging,
    held: list[HeldOutPairs],
    valid: Any,
) -> dict[str, list[Any]]:
    """Trains for some epochs, and returns what they logged.

    Args:
        run: The run.
        model: Compiled.
        data: To train on; its position is moved to the beginning.
        folder: Of checkpoints and metrics.
        epochs: How many.
        averaging: Of the weights.
        held: Looks at held-out pairs.
        valid: Validation text of Two-Tailed Averaging beside it; None: none.
    """
    data.seek(0, 0)
    log = MetricsLog(folder / "metrics.jsonl", seconds=True)
    callbacks: list[keras.callbacks.Callback] = [averaging, *held]
    if run.config.two_tailed and valid is not None:
        callbacks.append(TwoTailedAveraging(valid, monitor="nll", name="two_tailed"))
    callbacks.append(log)
    if run.phases == 2:
        if valid is None:
            # Finetuning goes on in the phase that training ended in.
            model.set_phase(1)
        else:
            callbacks.append(SwitchPhase(AveragingBegins(averaging)))
    run_files.fit_resumably(model, data, folder, epochs, callbacks, 120.0)
    rows = read_metrics_log(log.path)
    names = (
        "seconds",
        "nll",
        "averaged_loss",
        "averaged_length",
        "two_tailed_loss",
        "mutual_information",
        "pair_accuracy",
        "val_mine",
        "val_pair_accuracy",
        "raml",
        "reward",
        "effective_sample_size",
    )
    return {
        name: [row.get(name) for row in rows]
        for name in names
        if any(row.get(name) is not None for row in rows)
    }


def _valid(corpus: Corpus) -> Any:
    eos = corpus.vocabulary.eos_id
    return contiguous_batches(corpus.valid, _EVALUATION_ROWS, 70, prefix=eos).dataset()


def _save(model: keras.Model, folder: pathlib.Path) -> None:
    """Writes the model, averaged."""
    with naming(folder / "model.keras"):
        model.save(folder / "model.keras")
