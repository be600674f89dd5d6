"""Trains and evaluates one language model; returns its row of results."""

from __future__ import annotations

import pathlib
from typing import Any

import keras
import numpy as np

from experiments.imm_lm.config import RunConfig
from experiments.imm_lm.row import Prepared, row_of
from experiments.kit import run_files
from experiments.kit.run_settings import settings_of, strategy_for, training_text
from rlm_tf.command_line.json_files import write_json
from rlm_tf.data import Corpus, Noising, contiguous_batches
from rlm_tf.file_errors import naming
from rlm_tf.models import (
    InBatchContexts,
    InducedModelMatching,
    RecurrentLanguageModel,
    SampledContexts,
)
from rlm_tf.restricted import KneserNey
from rlm_tf.training import (
    DivergenceGuard,
    LearningRateHalving,
    MetricsLog,
    ResumableBatches,
    StartRule,
)


def prepare(config: RunConfig, corpus: Corpus, strategy: str = "default") -> Prepared:
    """Builds everything that a run needs, and writes nothing.

    Raises:
        ValueError: If settings are impossible or do not fit the corpus.
    """
    keras.utils.set_random_seed(config.seed)
    size = len(corpus.vocabulary)
    text = training_text(corpus, config.fraction, config.batch_size)
    # Every model is also interpolated with each of the two, for a fair comparison.
    n_grams = {
        name: KneserNey(config.restricted_order).fit(tokens, size)
        for name, tokens in {"same": text, "all": corpus.train}.items()
    }
    with strategy_for(config.batch_size, strategy).scope():
        restricted = n_grams[config.restricted_text]
        model = build_model(config, size, corpus, text, restricted)
        model.compile(keras.optimizers.SGD(config.learning_rate))
    return Prepared(config, corpus, text, n_grams, model)


def train(
    prepared: Prepared, folder: pathlib.Path, checkpoint_seconds: float = 120.0
) -> dict[str, Any]:
    """Trains a model into `folder`, see `fit`, and returns its row of results."""
    timer = fit(prepared, folder, checkpoint_seconds)
    return {**row_of(prepared, folder), **timer.result()}


def fit(
    prepared: Prepared, folder: pathlib.Path, checkpoint_seconds: float = 120.0
) -> run_files.StepTimer:
    """Trains a model; in the end it has its best weights.

    A run that was killed goes on from its last checkpoint. Besides checkpoints the
    folder gets config.json, metrics.jsonl, TensorBoard logs, model.keras and
    vocabulary.txt.

    Args:
        prepared: What `prepare` returned.
        folder: Where it is trained.
        checkpoint_seconds: Within an epoch, a checkpoint is written when the last is
            this old.

    Returns:
        The times of the steps.
    """
    config, corpus, text, _, model = prepared
    write_json(folder / "config.json", settings_of(config, corpus))
    eos = corpus.vocabulary.eos_id
    batches = contiguous_batches(text, config.batch_size, config.window, prefix=eos)
    valid = contiguous_batches(
        corpus.valid, config.batch_size, config.window, prefix=eos
    )
    halving = LearningRateHalving(factor=config.decay, max_decays=config.max_decays)
    log = MetricsLog(folder / "metrics.jsonl", seconds=True)
    kept: list[keras.callbacks.Callback] = [
        log,
        run_files.TensorBoardScalars(folder / "tensorboard", log),
        halving,
        DivergenceGuard(recover=True, best=halving.best),
    ]
    if config.uses_imm and config.start_perplexity is not None:
        kept.append(
            StartRule(config.start_perplexity, learning_rate=config.start_learning_rate)
        )
    noise = _noise(config, text, len(corpus.vocabulary))
    data = ResumableBatches(batches, transform=noise)
    timer = run_files.StepTimer()
    run_files.fit_resumably(
        model,
        data,
        folder,
        config.epochs,
        kept,
        checkpoint_seconds,
        others=[timer],
        validation_data=valid.dataset(),
    )
    halving.best.restore(model)
    with naming(folder / "model.keras"):
        model.save(folder / "model.keras")
    corpus.vocabulary.save(folder / "vocabulary.txt")
    return timer


def build_model(
    config: RunConfig,
    vocabulary_size: int,
    corpus: Corpus,
    text: np.ndarray,
    restricted: KneserNey,
) -> keras.Model:
    """Returns the language model of a run, wrapped if its arm is IMM."""
    # Published rates and clipping norms refer to losses summed over a window.
    options: dict[str, Any] = {
        "clip_norm": config.clip_norm,
        "loss_scale": float(config.window),
    }
    model = RecurrentLanguageModel(
        vocabulary_size + (config.arm == "noising-blank"),
        config.width,
        config.num_layers,
        dropout=config.dropout,
        seed=config.seed,
        **options,
    )
    if not config.uses_imm:
        return model
    contexts: InBatchContexts | SampledContexts
    if config.arm == "imm-in-batch":
        contexts = InBatchContexts(
            min_count=config.min_count,
            pass_mode=config.pass_mode,  # type: ignore[arg-type]
            separate_clipping=config.separate_clipping,
            bank_size=config.bank_size,
            bank_target=config.bank_target,
        )
        return InducedModelMatching(
            model, restricted, contexts, config.coefficient, **options
        )
    contexts = SampledContexts(
        text,
        config.k,
        config.window,
        truncated=config.variant == "authors",
        seed=config.seed,
    )
    return InducedModelMatching(
        model,
        restricted,
        contexts,
        config.coefficient,
        config.every,
        config.gradient,  # type: ignore[arg-type]
        variant=config.variant,  # type: ignore[arg-type]
        **options,
    )


def _noise(config: RunConfig, text: np.ndarray, vocabulary_size: int) -> Any:
    if not config.arm.startswith("noising-"):
        return None
    kind = config.arm.removeprefix("noising-")
    options: dict[str, Any] = {"gamma0": config.gamma0, "seed": config.seed}
    if kind == "blank":
        # One more id, which stands for "_" and is never predicted.
        return Noising(
            text, vocabulary_size + 1, kind="blank", blank_id=vocabulary_size, **options
        )
    if kind.startswith("bigram-kn"):
        discounting = "modified" if kind.endswith("modified") else "absolute"
        options |= {"kind": "bigram-kn", "discounting": discounting}
    else:
        options["kind"] = kind
    return Noising(text, vocabulary_size, **options)
