"""Draws gradients of both estimators of Phase II on the same batches."""

from __future__ import annotations

import time
from typing import Any

import keras
import numpy as np

from experiments.bmi_variance.config import VarianceConfig
from experiments.kit.run_settings import training_text
from rlm_tf import load_model
from rlm_tf.data import Corpus, SentencePairs, contiguous_batches, load_corpus
from rlm_tf.evaluation import GradientVariance, gradient_variance, variance_ratio
from rlm_tf.layers import LSTMCell, PairDiscriminator
from rlm_tf.models import BootstrappedMutualInformation, RegularizedLanguageModel
from rlm_tf.models.language.interface import language_model_of
from rlm_tf.training import ResumableBatches

# Of histograms of log10 ratios.
_EDGES = np.linspace(-4, 8, 61)


def variance(config: VarianceConfig) -> dict[str, Any]:
    """Returns the ratios of variances, RL over IW-RAML, as histograms."""
    corpus = load_corpus(config.corpus)
    text = training_text(corpus, config.fraction, 1)
    eos = corpus.vocabulary.eos_id
    model, discriminator = _trained(config, corpus)
    pairs = SentencePairs(
        text, eos, config.pairs, most_tokens=config.most_tokens, seed=config.seed
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
    }


def _ratio(rl: GradientVariance, raml: GradientVariance) -> dict[str, Any]:
    ratio = variance_ratio(rl, raml)
    row: dict[str, Any] = {"compared": len(ratio.raw)}
    for name, values in (("raw", ratio.raw), ("scaled", ratio.scaled)):
        known = values[np.isfinite(values)]
        if not len(known):
            row[name] = None
            continue
        logs = np.log10(known)
        row[name] = {
            "mean": float(known.mean()),
            "median": float(np.median(known)),
            "share_above_one": float(np.mean(known > 1)),
            "histogram": np.histogram(np.clip(logs, -4, 8), _EDGES)[0].tolist(),
        }
    return row


def _trained(
    config: VarianceConfig, corpus: Corpus
) -> tuple[keras.Model, PairDiscriminator]:
    if config.model == "untrained":
        model = RegularizedLanguageModel(
            len(corpus.vocabulary), LSTMCell(8), 1, seed=config.seed
        )
        return model, PairDiscriminator(8, seed=config.seed)
    loaded = load_model(config.model, compile=False)
    if not isinstance(loaded, BootstrappedMutualInformation):
        raise ValueError(
            f"--model={config.model} has no discriminator; expected a model that was "
            "trained with BMI."
        )
    return language_model_of(loaded), loaded.discriminator
