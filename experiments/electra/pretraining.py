"""Pre-trains one model of the study: a masked language model, or ELECTRA."""

from __future__ import annotations

import functools
import pathlib
import time
from typing import Any, NamedTuple

import keras
import numpy as np

from experiments.electra.chosen_rows import NEEDS
from experiments.electra.config import ARMS, CHOSEN, GRID, ElectraConfig
from experiments.electra.finetuning import task_run
from experiments.electra.gradients import TermNorms
from experiments.electra.naming import ElectraRun, name_of, standalone_name
from experiments.electra.projecting import project
from experiments.electra.standalone import (
    LOOKED_AT,
    StandaloneScores,
    corrupted_file,
    digest_of,
    first_rows,
    load_corrupted,
    n_gram_detector,
)
from experiments.kit import machine
from experiments.kit.encoder_model import (
    adam,
    encoder,
    fit_to_the_end,
    masked_batches,
    masking,
)
from experiments.kit.encoder_text import EncoderText, read_encoder_text
from experiments.kit.grids import command_of
from experiments.kit.run_list import Run
from rlm_tf.command_line.json_files import write_json
from rlm_tf.evaluation import CorruptedText, Detection, TwoSidedNGram, corrupt, detect
from rlm_tf.file_errors import naming
from rlm_tf.models import Electra, MaskedLanguageModel, count_parameters
from rlm_tf.optimizers import DecoupledOptimizer
from rlm_tf.training import (
    AdamLog,
    DivergenceGuard,
    TrainingDivergedError,
    read_metrics_log,
)

# Held-out batches that are looked at while training; all are judged behind it.
_LOOK_BATCHES = 16
# A detector whose loss does not leave ln 2 has learnt nothing, after so many steps.
_STUCK, _STUCK_STEPS = 0.69, 20
# Masked places that the n-grams are judged on, of the same text as the models.
_MOST_PLACES = 5000
_MAKES_TEXTS = "python -m experiments.electra --preset=generators --seeds=1,2"


def runs_of(config: ElectraConfig, seeds: list[int]) -> list[Run]:
    """Returns the runs of a grid, or those that fine-tune what it has made."""
    runs = [
        ElectraRun(config, arm, generator, rate, weight, seed)
        for seed in seeds
        for generator in config.generators
        for arm in config.arms
        for rate in config.rates or (CHOSEN[arm],)
        for weight in config.weights
        if arm != "masked" or weight == config.weights[0]
    ]
    if config.tasks:
        folder = pathlib.Path(config.encoders_dir)
        return [task_run(run, task, folder) for run in runs for task in config.tasks]
    return [
        Run(
            name_of(run),
            run.settings,
            functools.partial(prepare, run),
            functools.partial(pretrain, run),
            NEEDS,
        )
        for run in runs
    ]


class Prepared(NamedTuple):
    """What a run needs.

    Attributes:
        text: Rows of the corpus; None where steps are timed only.
        model: Compiled.
    """

    text: EncoderText | None
    model: keras.Model


def prepare(run: ElectraRun) -> Prepared:
    """Reads the corpus, and returns the compiled model of a run."""
    config = run.config
    keras.utils.set_random_seed(run.seed)
    text = None if config.project_steps else read_encoder_text(config)
    size = len(text.vocabulary) if text else config.pieces
    return Prepared(text, build(run, size))


def build(run: ElectraRun, vocabulary_size: int) -> keras.Model:
    """Returns the compiled model of a run."""
    config = run.config
    # ELECTRA's bound on masked positions is of use under XLA alone.
    if run.arm == "masked":
        model: keras.Model = MaskedLanguageModel(
            encoder(config, vocabulary_size, run.generator, run.seed),
            clip_norm=config.clip_norm,
            seed=run.seed,
        )
        model.compile(adam(config, run.rate))
        return model
    kind = ARMS[run.arm]
    decoupled = kind["optimizers"] == 2
    model = Electra(
        encoder(config, vocabulary_size, run.generator, 1000 + run.seed),
        encoder(config, vocabulary_size, config.layers, run.seed),
        discriminator_weight=run.weight,
        embeddings=kind["embeddings"],
        clip_norm=None if decoupled else config.clip_norm,
        seed=run.seed,
    )
    if decoupled:
        rates = {"generator": config.generator_rate, "discriminator": run.rate}
        model.compile(
            DecoupledOptimizer(
                {part: adam(config, rate) for part, rate in rates.items()},
                dict.fromkeys(rates, config.clip_norm),
            )
        )
    else:
        model.compile(adam(config, run.rate))
    return model


def pretrain(
    run: ElectraRun, prepared: Prepared, folder: pathlib.Path
) -> dict[str, Any]:
    """Trains and judges a model; returns its row."""
    config, (text, model) = run.config, prepared
    row = {
        "name": folder.name,
        "command": command_of(GRID, config, run.seed, **run.chosen),
        **{name: getattr(run, name) for name in ("arm", "generator", "rate", "seed")},
        "weight": None if run.arm == "masked" else run.weight,
        "generator_rate": run.settings["generator_rate"],
        "steps": config.steps,
        "stage": config.stage,
        "parameters": _parameters(model),
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
    }
    if text is None:
        found = project(model, config)
        return {**row, **found, "finished": time.strftime("%Y-%m-%d")}
    row["text_sha256"] = text.digest
    texts = _standalone_texts(config, folder) if run.arm != "masked" else {}
    write_json(folder / "config.json", run.settings)
    looks: list[keras.callbacks.Callback] = [AdamLog()]
    if texts:
        looked = {name: first_rows(t["valid"], LOOKED_AT) for name, t in texts.items()}
        looks.append(StandaloneScores(looked))
    may_be_stuck = run.arm != "masked" and config.steps // config.looks >= _STUCK_STEPS
    highest = {"discriminator": _STUCK} if may_be_stuck else None
    guard = DivergenceGuard(highest=highest)
    judged = masking(config, text, 0)
    valid = judged.of_all(text.valid.in_order(config.batch_size)).take(_LOOK_BATCHES)
    if run.arm != "masked":
        ((batch,),) = valid.take(1)
        looks.append(TermNorms(batch))
    began = time.perf_counter()
    try:
        curve = fit_to_the_end(
            config,
            model,
            masked_batches(config, text, run.seed),
            folder,
            [*looks, guard],
            validation_data=valid.cache(),
        )
    except TrainingDivergedError as error:
        # What the study asks about.
        curve = read_metrics_log(folder / "metrics.jsonl")
        found = {"diverged": str(error)}
    else:
        with naming(folder / "model.keras"):
            model.save(folder / "model.keras")
        text.vocabulary.save(folder / "vocabulary.json")
        if run.arm == "masked":
            found = _judge_masked(run, model, text, folder)
        else:
            found = _judge_detector(run, model, text, texts)
    return {
        **row,
        "curve": _columns(curve),
        # Of the last process.
        "seconds": time.perf_counter() - began,
        **found,
        "finished": time.strftime("%Y-%m-%d"),
    }


def _standalone_texts(
    config: ElectraConfig, folder: pathlib.Path
) -> dict[str, dict[str, CorruptedText]]:
    """Returns the corrupted texts that detectors are scored on, by generator."""
    return {
        name: {
            split: load_corrupted(
                folder.parent / standalone_name(config, name), split, _MAKES_TEXTS
            )
            for split in ("valid", "test")
        }
        for name in config.standalone
    }


def _judge_masked(
    run: ElectraRun,
    model: MaskedLanguageModel,
    text: EncoderText,
    folder: pathlib.Path,
) -> dict[str, Any]:
    """Scores masked words of the test text, and corrupts held-out text."""
    config = run.config
    judged = masking(config, text, 0)
    batches = judged.of_all(text.test.in_order(config.batch_size))
    found = model.evaluate(batches, verbose=0, return_dict=True)
    corrupted = {}
    for split in ("valid", "test"):
        corrupted[split] = corrupt(model, getattr(text, split), judged, seed=0)
        corrupted[split].save(corrupted_file(folder, split))
    parts = [[part.numpy() for part in x[:3]] for (x,) in batches]
    tokens, seen, positions = (
        np.concatenate(part) for part in zip(*parts, strict=True)
    )
    places = np.argwhere(positions > 0)
    rng = np.random.default_rng(0)
    most = min(_MOST_PLACES, len(places))
    places = places[np.sort(rng.choice(len(places), most, replace=False))]
    peer = TwoSidedNGram(text.train.tokens, text.train.ids, len(text.vocabulary))
    return {
        "test": {name: found[name] for name in ("nll", "accuracy")},
        "n_gram": peer.scores(tokens, places, seen)._asdict(),
        "frequency": peer.unigram_scores(tokens, places)._asdict(),
        "replaced": float(corrupted["test"].labels[~corrupted["test"].padding].mean()),
        "corrupted_sha256": digest_of(corrupted["test"]),
        "n_gram_detector": n_gram_detector(text, **corrupted)._asdict(),
    }


def _judge_detector(
    run: ElectraRun,
    model: Electra,
    text: EncoderText,
    texts: dict[str, dict[str, CorruptedText]],
) -> dict[str, Any]:
    """Scores a detector on text of its own generator and of others."""
    config = run.config
    batches = masking(config, text, 0).of_all(text.test.in_order(config.batch_size))
    joint = model.evaluate(batches, verbose=0, return_dict=True)
    counts = np.bincount(text.train.tokens.ravel(), minlength=len(text.vocabulary))
    standalone: dict[str, dict[str, Any]] = {}
    for name, splits in texts.items():
        standalone[name] = {
            split: _numbers(detect(model, corrupted, counts=counts))
            for split, corrupted in splits.items()
        }
        standalone[name]["corrupted_sha256"] = digest_of(splits["test"])
    names = ("generator", "generator_accuracy", "discriminator", "f1", "replaced")
    return {"joint": {n: joint[n] for n in names}, "standalone": standalone}


def _numbers(found: Detection) -> dict[str, Any]:
    return {
        **found.scores._asdict(),
        "cross_entropy": found.cross_entropy,
        "f1_by_frequency": [scores.f1 for scores in found.by_frequency],
    }


def _parameters(model: keras.Model) -> dict[str, int]:
    if isinstance(model, MaskedLanguageModel):
        return {"encoder": count_parameters(model.encoder)}
    return {
        "generator": count_parameters(model.generator),
        "discriminator": count_parameters(model.discriminator),
    }


def _columns(curve: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Returns what was logged, by name."""
    names = dict.fromkeys(name for row in curve for name in row)
    return {name: [row.get(name) for row in curve] for name in names}
