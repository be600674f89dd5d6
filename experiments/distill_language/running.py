"""The runs of the study: plain models, teachers, students, peers."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import pathlib
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import keras
import numpy as np

from experiments.distill_language import models
from experiments.distill_language.config import (
    ARMS,
    ENSEMBLE,
    FOLDS,
    GRID,
    N_GRAM,
    LanguageConfig,
)
from experiments.distill_language.language_run import (
    LanguageRun,
    places_of,
    plain_places,
    teachers_of,
)
from experiments.distill_language.lumps import lump_errors
from experiments.kit import machine, run_files
from experiments.kit.grids import command_of
from experiments.kit.mixture_judge import SPLITS, LogProbs, MixtureJudge
from experiments.kit.run_list import Run
from experiments.kit.run_settings import text_digest, training_text
from rlm_tf import load_model
from rlm_tf.averaging import TwoTailedAveraging
from rlm_tf.command_line import run_lock
from rlm_tf.command_line.json_files import read_json, write_json
from rlm_tf.command_line.same_settings import check_same_settings
from rlm_tf.data import (
    ContiguousBatches,
    Corpus,
    PlacedBatches,
    contiguous_batches,
    load_corpus,
)
from rlm_tf.evaluation import MonteCarloDropout, frequency_groups, token_fidelity
from rlm_tf.file_errors import naming
from rlm_tf.models import TeacherPredictions, count_parameters
from rlm_tf.models.language.interface import language_model_of
from rlm_tf.restricted import KneserNey
from rlm_tf.training import (
    DivergenceGuard,
    MetricsLog,
    ResumableBatches,
    read_metrics_log,
)

NEEDS = ("name", "arm", "seed", "test", "mixed_test")
_SECONDS = 120.0
_MODEL, _PREDICTIONS = "model.keras", "predictions"
_GROUPS = 4
# Of what is compared with teachers token by token.
_MOST_COMPARED = 40_000
# What cross-fitted teachers do not depend on.
_OF_STUDENT = ("arm", "seed", "weight", "coefficient", "lipschitz", "consistency")


class Prepared(NamedTuple):
    """What a run needs.

    Attributes:
        corpus: The corpus.
        text: What is trained on.
        batches: Of it.
    """

    corpus: Corpus
    text: np.ndarray
    batches: ContiguousBatches


def runs_of(config: LanguageConfig, seeds: list[int]) -> list[Run]:
    """Returns the runs of a grid, teachers first; the n-gram has one seed."""
    runs: dict[str, LanguageRun] = {}
    for arm in config.arms:
        teaches = arm in ARMS and "of" in ARMS[arm]
        settings = [
            (temperature, weight)
            for temperature in config.temperatures
            for weight in config.weights
        ]
        for seed in seeds[:1] if arm == N_GRAM else seeds:
            for temperature, weight in settings if teaches else [(0.0, 0.0)]:
                run = LanguageRun(config, arm, temperature, weight, seed)
                for each in (*teachers_of(run), run):
                    runs.setdefault(each.name, each)
    return [
        Run(
            run.name,
            run.settings,
            functools.partial(_prepare, run),
            functools.partial(_measure, run),
            NEEDS,
        )
        for run in runs.values()
    ]


def _prepare(run: LanguageRun) -> Prepared:
    keras.utils.set_random_seed(run.seed)
    corpus = load_corpus(run.config.corpus)
    text = training_text(corpus, run.config.fraction, run.config.batch_size)
    return Prepared(corpus, text, _batches(run.config, corpus, text))


def _batches(
    config: LanguageConfig, corpus: Corpus, text: np.ndarray
) -> ContiguousBatches:
    eos = corpus.vocabulary.eos_id
    return contiguous_batches(text, config.batch_size, config.window, prefix=eos)


def _measure(
    run: LanguageRun, prepared: Prepared, folder: pathlib.Path
) -> dict[str, Any]:
    """Trains a model, or takes a peer; returns its row."""
    config, (corpus, text, batches) = run.config, prepared
    judge = MixtureJudge(corpus, text)
    chosen: dict[str, Any] = {"arms": run.arm}
    if run.weight:
        chosen |= {"temperatures": run.temperature, "weights": run.weight}
    row: dict[str, Any] = {
        "name": folder.name,
        "command": command_of(GRID, config, run.seed, **chosen),
        **{name: getattr(run, name) for name in LanguageRun._fields[1:]},
        "stage": config.stage,
        "train_tokens": len(text),
        "text_sha256": text_digest(corpus),
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
    }
    if run.arm == N_GRAM:
        n_gram = KneserNey(5).fit(text, len(corpus.vocabulary))
        log_q = judge.restricted_log_probs(n_gram)
    elif run.arm == ENSEMBLE:
        members = map(_read, plain_places(run, folder))
        log_q = _mean([judge.log_probs(member) for member in members])
    else:
        teacher = _teacher(run, prepared, folder)
        model = models.arm_model(
            config,
            run.arm,
            text,
            len(corpus.vocabulary),
            run.seed,
            teacher,
            run.temperature,
            run.weight,
        )
        placed = isinstance(teacher, TeacherPredictions) or run.arm == "soteacher"
        source = PlacedBatches(batches) if placed else batches
        passes = ARMS[run.arm].get("passes", 1) * config.epochs
        longer = dataclasses.replace(config, epochs=passes)
        with _trained(longer, model, source, corpus, folder) as cost:
            own = language_model_of(model)
            row |= {"parameters": count_parameters(own), **cost}
            log_q = judge.log_probs(own)
            row["fidelity"] = _fidelity(run, own, prepared, folder)
            if run.weight and run.arm != "of-n-gram":
                first = _read(places_of(run, folder)[0])
                row["lumps"] = lump_errors(first, own, text, run.temperature)
            with naming(folder / _MODEL):
                own.save(folder / _MODEL)
    found = judge.scores_of(log_q)
    row |= {
        "mu": found["mu"],
        **{split: found[split]["alone"] for split in SPLITS},
        **{f"mixed_{split}": found[split]["mixed"] for split in SPLITS},
    }
    return {**row, "finished": time.strftime("%Y-%m-%d")}


# === Teachers ===


def _read(folder: pathlib.Path) -> keras.Model:
    if not (folder / _MODEL).exists():
        arm, _, seed = folder.name.rpartition("-seed")
        raise FileNotFoundError(
            f"{folder / _MODEL} is not there: run with --arms={arm} --seeds={seed} "
            "first, in the same --output_dir and otherwise as now (of trials, with "
            "--preset=plain; --noresume, if only its row is there)."
        )
    return load_model(folder / _MODEL, compile=False)


def _teacher(run: LanguageRun, prepared: Prepared, folder: pathlib.Path) -> Any:
    """Returns the teacher of an arm: stored predictions, or a model on-policy."""
    config, (corpus, text, batches) = run.config, prepared
    of = ARMS[run.arm].get("of")
    if of is None:
        return None
    path = folder / _PREDICTIONS
    if of == "n-gram":
        size = len(corpus.vocabulary)
        return models.stored_n_gram(config, text, size, batches, path, run.temperature)
    if of == "folds":
        return _cross_fitted(run, prepared, folder)
    places = places_of(run, folder)
    for place in places:
        if not (place / _MODEL).exists():
            _read(place)
    if ARMS[run.arm].get("on_policy"):
        return _read(places[0])
    masks = ARMS[run.arm].get("dropout")
    return models.stored(config, places, batches, path, run.temperature, masks=masks)


def _cross_fitted(
    run: LanguageRun, prepared: Prepared, folder: pathlib.Path
) -> TeacherPredictions:
    """Returns what models say of the fifth of the text that each has not seen.

    One set serves all seeds of students.

    Raises:
        ValueError: If there is one of other settings.
        BlockingIOError: If another process makes it.
    """
    shared = folder.parent / "folds"
    own = {name: run.settings[name] for name in run.settings if name not in _OF_STUDENT}
    with run_lock.held(shared.absolute()):
        known = shared / "config.json"
        if known.exists():
            remedy = f"another --output_dir, or remove {shared}"
            check_same_settings(read_json(known, remedy), own, str(known), remedy)
        else:
            shared.mkdir(parents=True, exist_ok=True)
            write_json(known, own)
        return _folds(run, prepared, folder)


def _folds(
    run: LanguageRun, prepared: Prepared, folder: pathlib.Path
) -> TeacherPredictions:
    """Trains a model without each fifth of the text, which it predicts then."""
    config, (corpus, text, _) = run.config, prepared
    is_dynamic = ARMS[run.arm].get("dynamic", False)
    name = f"dynamic-{_PREDICTIONS}" if is_dynamic else _PREDICTIONS
    path = folder.parent / "folds" / name
    if path.exists():
        return TeacherPredictions(path)
    edges = np.linspace(0, len(text), FOLDS + 1).astype(int)
    parts = []
    for fold, place in enumerate(places_of(run, folder)):
        place.mkdir(parents=True, exist_ok=True)
        part = text[edges[fold] : edges[fold + 1]]
        rest = np.concatenate([text[: edges[fold]], text[edges[fold + 1] :]])
        if not (place / _MODEL).exists():
            size = len(corpus.vocabulary)
            model = models.compiled(
                models.plain_model(config, size, 100 + fold), config
            )
            with _trained(config, model, _batches(config, corpus, rest), corpus, place):
                model.save(place / _MODEL)
        # Rows of a batch would begin without a past.
        eos = corpus.vocabulary.eos_id
        one_row = contiguous_batches(part, 1, config.window, prefix=eos)
        dynamic = functools.partial(
            models.dynamic_evaluation, config, rest, corpus.valid, eos
        )
        parts.append(
            models.stored(
                config,
                [place],
                one_row,
                place / name,
                run.temperature,
                dynamic=dynamic if is_dynamic else None,
            )
        )
    return TeacherPredictions.join(parts, path)


def _fidelity(
    run: LanguageRun, model: keras.Model, prepared: Prepared, folder: pathlib.Path
) -> list[dict[str, float]]:
    """Returns how a student differs from its teachers: all tokens, and by frequency.

    What has no teacher is compared with itself, for its calibration.
    """
    corpus = prepared.corpus
    if run.arm == "of-n-gram":
        teachers: Any = models.n_gram_teacher(prepared.text, len(corpus.vocabulary))
    elif run.weight:
        teachers = [_read(place) for place in places_of(run, folder)]
    else:
        teachers = model
    groups = frequency_groups(prepared.text, len(corpus.vocabulary), _GROUPS)
    masks = ARMS[run.arm].get("dropout")
    found = token_fidelity(
        teachers,
        model,
        corpus.test[:_MOST_COMPARED],
        prefix=corpus.vocabulary.eos_id,
        groups=groups,
        dropout=None if masks is None else MonteCarloDropout(masks),
    )
    return [each._asdict() for each in found]


# === Training ===


@contextlib.contextmanager
def _trained(
    config: LanguageConfig,
    model: keras.Model,
    source: Any,
    corpus: Corpus,
    folder: pathlib.Path,
) -> Iterator[dict[str, Any]]:
    """Trains a model, which has its best weights inside; yields what it took."""
    log = MetricsLog(folder / "metrics.jsonl", seconds=True)
    data = ResumableBatches(source)
    valid = contiguous_batches(
        corpus.valid, config.batch_size, config.window, prefix=corpus.vocabulary.eos_id
    ).dataset()
    averages = TwoTailedAveraging(valid, monitor="nll")
    guard = DivergenceGuard(recover=True, factor=0.9, also=[averages])
    kept = [averages, log, guard]
    run_files.fit_resumably(model, data, folder, config.epochs, kept, _SECONDS)
    rows = read_metrics_log(log.path)
    with averages.best(model):
        yield {
            "epochs": len(rows),
            "seconds": rows[-1].get("seconds"),
            "curve": [row.get("averaged_loss", row.get("nll")) for row in rows],
        }


def _mean(parts: list[LogProbs]) -> LogProbs:
    """Returns the logarithm of the mean probability."""
    return {
        split: np.logaddexp.reduce([part[split].astype(np.float64) for part in parts])
        - math.log(len(parts))
        for split in SPLITS
    }
