"""Lets a model speak, and measures what it says."""

from __future__ import annotations

import dataclasses
import functools
import math
import pathlib
import time
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from experiments.bmi_generation.config import GRID, TEXTS, GenerationConfig
from experiments.bmi_generation.report import NEEDS
from experiments.kit import machine
from experiments.kit.bmi_models import model_digest, trained_file
from experiments.kit.grids import command_of
from experiments.kit.run_list import Run
from experiments.kit.run_settings import text_digest
from rlm_tf import load_model
from rlm_tf.command_line.json_files import write_json
from rlm_tf.commands.information.estimating import Job, estimates
from rlm_tf.commands.information.sources import Streams
from rlm_tf.data import Corpus, load_corpus
from rlm_tf.evaluation import model_information, reverse_perplexity, unigram_text
from rlm_tf.generation import generate

# Tokens of a row of a sample; a text is one row behind another.
_ROW = 10_000


class Prepared(NamedTuple):
    """What a run needs.

    Attributes:
        corpus: The corpus.
        model: A language model; None where a text is measured.
    """

    corpus: Corpus
    model: keras.Model | None


def runs_of(config: GenerationConfig, seeds: list[int]) -> list[Run]:
    """Returns the runs of a grid."""
    return [
        Run(
            f"{arm}-seed{seed}",
            _settings(config, arm, seed),
            functools.partial(prepare, config, arm, seed),
            functools.partial(measure, config, arm, seed),
            NEEDS,
        )
        for arm in config.arms
        for seed in seeds
    ]


def _settings(config: GenerationConfig, arm: str, seed: int) -> dict[str, Any]:
    """Returns what identifies a run."""
    return {
        **dataclasses.asdict(config),
        "arms": arm,
        "seed": seed,
        # Where the models are says nothing of them.
        "models_dir": None,
        "model_sha256": None
        if arm in TEXTS
        else model_digest(config.models_dir, arm, config.weight, seed),
    }


def prepare(config: GenerationConfig, arm: str, seed: int) -> Prepared:
    """Reads the corpus and a model.

    Raises:
        FileNotFoundError: If there is not the one model.
    """
    corpus = load_corpus(config.corpus)
    if arm in TEXTS:
        return Prepared(corpus, None)
    file = trained_file(config.models_dir, arm, config.weight, seed)
    return Prepared(corpus, load_model(file, compile=False))


def measure(
    config: GenerationConfig,
    arm: str,
    seed: int,
    prepared: Prepared,
    folder: pathlib.Path,
) -> dict[str, Any]:
    """Measures a text, or what a model says; returns the row."""
    corpus, model = prepared
    write_json(folder / "config.json", _settings(config, arm, seed))
    eos = corpus.vocabulary.eos_id
    began = time.perf_counter()
    text = _text(config, arm, seed, corpus, model)
    said = time.perf_counter() - began
    streams = Streams(
        [arm], [text], [text == eos], len(corpus.vocabulary), 0.0, [len(text)]
    )
    found = estimates(
        [Job(0, arm, gap) for gap in config.gaps],
        streams,
        folder / "folds",
        segment=config.segment,
        folds=config.folds,
        critic="separable",
        seed=seed,
    )
    information = [
        {
            "gap": job.gap,
            "mine": info.mine._asdict(),
            "nwj": info.nwj._asdict(),
            "shuffled": info.shuffled._asdict(),
            "ceiling": info.ceiling,
        }
        for job, info in found
    ]
    reverse = reverse_perplexity(
        text[: config.reverse_tokens],
        corpus.valid,
        corpus.test,
        vocabulary_size=len(corpus.vocabulary),
        prefix=eos,
        units=config.reverse_units,
        most_epochs=config.reverse_epochs,
        seed=seed,
    )
    row: dict[str, Any] = {
        "name": folder.name,
        "command": command_of(GRID, config, seed, arms=arm),
        "arm": arm,
        "seed": seed,
        "corpus": {"name": corpus.name, "text_sha256": text_digest(corpus)},
        "tokens": len(text),
        "information": information,
        "reverse": reverse._asdict(),
        "distinct_words": len(np.unique(text)),
        "seconds_said": said,
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
        "finished": time.strftime("%Y-%m-%d"),
    }
    if model is not None:
        row["sandwich"] = model_information(
            model,
            segment=config.sandwich_segment,
            pairs=config.sandwich_pairs,
            prefix=eos,
            seed=seed,
        )._asdict()
    return row


def _text(
    config: GenerationConfig,
    arm: str,
    seed: int,
    corpus: Corpus,
    model: keras.Model | None,
) -> np.ndarray:
    if arm == "real":
        return np.asarray(corpus.train[: config.tokens], np.int32)
    if arm == "unigram":
        return unigram_text(corpus.train, config.tokens, seed)
    assert model is not None
    rows = math.ceil(config.tokens / _ROW)
    each = math.ceil(config.tokens / rows)
    prompts = tf.fill([rows, 1], corpus.vocabulary.eos_id)
    say = tf.function(lambda: generate(model, prompts, each, seed=seed).flat_values)
    return say().numpy()[: config.tokens]
