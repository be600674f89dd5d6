"""Draws gradients of all estimators of Phase II on the same batches."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import time
from typing import Any, NamedTuple

import keras
import numpy as np

from experiments.bmi_variance.config import GRID, VarianceConfig
from experiments.bmi_variance.report import NEEDS
from experiments.kit import machine
from experiments.kit.bmi_models import model_digest, trained_file
from experiments.kit.grids import command_of
from experiments.kit.run_list import Run
from experiments.kit.run_settings import text_digest, training_text
from rlm_tf import load_model
from rlm_tf.command_line.json_files import write_json
from rlm_tf.data import Corpus, SentencePairs, contiguous_batches, load_corpus
from rlm_tf.evaluation import GradientVariance, gradient_variance, variance_ratio
from rlm_tf.layers import LSTMCell, PairDiscriminator
from rlm_tf.models import BootstrappedMutualInformation, RegularizedLanguageModel
from rlm_tf.models.language.interface import language_model_of
from rlm_tf.training import ResumableBatches

# Of histograms of log10 ratios.
_EDGES = np.linspace(-4, 8, 61)


def runs_of(config: VarianceConfig, seeds: list[int]) -> list[Run]:
    """Returns the runs of a grid, one a seed."""
    return [
        Run(
            f"{config.arm}-seed{seed}",
            _settings(config, seed),
            functools.partial(prepare, config, seed),
            functools.partial(measure, config, seed),
            NEEDS,
        )
        for seed in seeds
    ]


def _settings(config: VarianceConfig, seed: int) -> dict[str, Any]:
    """Returns what identifies a run."""
    return {
        **dataclasses.asdict(config),
        "seed": seed,
        # Where the models are says nothing of them.
        "models_dir": None,
        "model_sha256": None
        if config.arm == "untrained"
        else model_digest(config.models_dir, config.arm, config.weight, seed),
    }


class Prepared(NamedTuple):
    """What a run needs.

    Attributes:
        corpus: The corpus.
        model: The language model.
        discriminator: Of its BMI.
    """

    corpus: Corpus
    model: keras.Model
    discriminator: PairDiscriminator


def prepare(config: VarianceConfig, seed: int) -> Prepared:
    """Reads the corpus and a model.

    Raises:
        FileNotFoundError: If there is not the one model.
    """
    corpus = load_corpus(config.corpus)
    if config.arm == "untrained":
        model = RegularizedLanguageModel(
            len(corpus.vocabulary), LSTMCell(8), 1, seed=seed
        )
        return Prepared(corpus, model, PairDiscriminator(8, seed=seed))
    file = trained_file(config.models_dir, config.arm, config.weight, seed)
    loaded = load_model(file, compile=False)
    return Prepared(corpus, language_model_of(loaded), loaded.discriminator)


def measure(
    config: VarianceConfig, seed: int, prepared: Prepared, folder: pathlib.Path
) -> dict[str, Any]:
    """Returns the row: ratios of variances, RL over IW-RAML, as histograms."""
    corpus, model, discriminator = prepared
    write_json(folder / "config.json", _settings(config, seed))
    text = training_text(corpus, config.fraction, 1)
    eos = corpus.vocabulary.eos_id
    pairs = SentencePairs(
        text, eos, config.pairs, most_tokens=config.most_tokens, seed=seed
    )
    windows = contiguous_batches(text, 1, 2, prefix=eos)
    found: dict[str, GradientVariance] = {}
    seconds: dict[str, float] = {}
    # The released scale divides by the length of the batch.
    estimators: dict[str, dict[str, Any]] = {
        "rl": {"phase_two": "rl", "end_id": eos},
        "raml": {"phase_two": "raml"},
        "raml, released scale": {"phase_two": "raml", "scale": "batch"},
        "raml, summed": {"phase_two": "raml", "scale": "sum"},
    }
    for name, options in estimators.items():
        bmi = BootstrappedMutualInformation(
            model,
            discriminator=discriminator,
            **options,
        )
        bmi.set_phase(1)
        data = ResumableBatches(windows, transform=pairs)
        began = time.perf_counter()
        found[name] = gradient_variance(bmi, data.dataset.take(config.batches))
        seconds[name] = time.perf_counter() - began
    return {
        "name": folder.name,
        "command": command_of(GRID, config, seed),
        "arm": config.arm,
        "seed": seed,
        "corpus": {"name": corpus.name, "text_sha256": text_digest(corpus)},
        "estimators": {
            name: {
                "signal": each.signal,
                "noise": each.noise,
                "mean_variance": float(each.variance.mean()),
                "seconds": seconds[name],
            }
            for name, each in found.items()
        },
        "parameters": len(found["rl"].variance),
        "batches": found["rl"].batches,
        "edges": _EDGES.tolist(),
        "ratios": {
            name: _ratio(found["rl"], each)
            for name, each in found.items()
            if name != "rl"
        },
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
        "finished": time.strftime("%Y-%m-%d"),
    }


def _ratio(rl: GradientVariance, raml: GradientVariance) -> dict[str, Any]:
    ratio = variance_ratio(rl, raml)
    known = ratio.raw[np.isfinite(ratio.raw)]
    row: dict[str, Any] = {"compared": len(ratio.raw), "raw": None}
    if len(known):
        logs = np.clip(np.log10(known), _EDGES[0], _EDGES[-1])
        row["raw"] = {
            "mean": float(known.mean()),
            "median": float(np.median(known)),
            "share_above_one": float(np.mean(known > 1)),
            "histogram": np.histogram(logs, _EDGES)[0].tolist(),
        }
    return row
