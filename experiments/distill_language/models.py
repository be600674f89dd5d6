"""The models of the arms, compiled, and what their teachers say."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from experiments.distill_language.config import ARMS, LanguageConfig
from experiments.kit.recurrent_config import RunConfig
from experiments.kit.recurrent_model import build_model
from rlm_tf import load_model
from rlm_tf.data import ContiguousBatches
from rlm_tf.distillation import KD, GeneralisedJSD
from rlm_tf.evaluation import (
    DynamicEvaluation,
    MonteCarloDropout,
    gradient_statistics,
    target_log_probs,
)
from rlm_tf.models import (
    InBatchContexts,
    InducedModelMatching,
    LanguageDistillation,
    StudentOrientedLanguageTeacher,
    TeacherPredictions,
)
from rlm_tf.restricted import KneserNey
from rlm_tf.training import TokenEnsemble

_CLIP_NORM = 10.0
_ORDER = 5
# Of stored n-grams, so that every word has a logarithm.
_FLOOR = 1e-6
# Of dynamic evaluation; the rate is chosen on so many tokens.
_DYNAMIC_RATES, _DYNAMIC_DECAY, _DYNAMIC_EPSILON = (1e-4, 3e-4, 1e-3), 1e-3, 1e-3
_CHOSEN_ON = 10_000


def plain_model(
    config: LanguageConfig, vocabulary_size: int, seed: int, share: float = 1.0
) -> keras.Model:
    """Returns the language model of a seed, not compiled."""
    width = max(round(share * config.width), 1)
    run = RunConfig(
        seed=seed,
        width=width,
        num_layers=2,
        rounds=0,
        rank=0,
        window=config.window,
        batch_size=config.batch_size,
        clip_norm=_CLIP_NORM,
        l2=config.decay,
        input_dropout=config.input_dropout,
        layer_dropout=config.layer_dropout,
        state_dropout=config.state_dropout,
        output_dropout=config.output_dropout,
    )
    return build_model(run, vocabulary_size, width)


def compiled(model: keras.Model, config: LanguageConfig) -> keras.Model:
    """Returns a model with the optimiser of all arms."""
    model.compile(keras.optimizers.Adam(config.learning_rate, beta_1=0.0, epsilon=1e-8))
    return model


def arm_model(
    config: LanguageConfig,
    arm: str,
    text: np.ndarray,
    vocabulary_size: int,
    seed: int,
    teacher: Any,
    temperature: float,
    weight: float,
) -> keras.Model:
    """Returns the compiled model of an arm.

    Args:
        config: The settings.
        arm: Of `ARMS`.
        text: What is trained on.
        vocabulary_size: V.
        seed: Of weights and dropout.
        teacher: Stored predictions, or a model; None: there is none.
        temperature: Of KD.
        weight: Of KD.
    """
    kind = ARMS[arm]
    model = plain_model(config, vocabulary_size, seed, kind.get("width", 1.0))
    if kind.get("imm"):
        bigram = KneserNey(2).fit(text, vocabulary_size)
        model = InducedModelMatching(
            model, bigram, InBatchContexts(), config.coefficient
        )
    if kind.get("soteacher"):
        model = StudentOrientedLanguageTeacher(
            model,
            lipschitz=config.lipschitz,
            consistency=config.consistency,
            epochs=config.epochs,
            ensemble=TokenEnsemble(len(text), config.k),
        )
    if teacher is not None:
        share = kind.get("on_policy", 0.0)
        loss = GeneralisedJSD(0.5, temperature) if share else KD(temperature)
        model = LanguageDistillation(
            teacher,
            model,
            [(loss, weight)],
            student_weight=1 - weight,
            on_policy=share,
            seed=seed,
        )
    return compiled(model, config)


def stored(
    config: LanguageConfig,
    folders: list[pathlib.Path],
    batches: ContiguousBatches,
    path: pathlib.Path,
    temperature: float,
    *,
    dynamic: Callable[[keras.Model], DynamicEvaluation] | None = None,
    masks: int | None = None,
) -> TeacherPredictions:
    """Returns what the models of some folders say of a text, stored once.

    Args:
        config: The settings.
        folders: Of the models.
        batches: Of the text.
        path: Where predictions are stored.
        temperature: T.
        dynamic: Returns how the weights of the only model follow the text.
        masks: Of dropout, under which the mean is taken; None: dropout is off.
    """
    if path.exists():
        return TeacherPredictions(path)
    models = [load_model(folder / "model.keras", compile=False) for folder in folders]
    return TeacherPredictions.write(
        models,
        batches,
        path,
        k=config.k,
        temperature=temperature,
        dynamic=None if dynamic is None else dynamic(models[0]),
        dropout=None if masks is None else MonteCarloDropout(masks),
    )


def dynamic_evaluation(
    config: LanguageConfig,
    text: np.ndarray,
    valid: np.ndarray,
    prefix: int,
    model: keras.Model,
) -> DynamicEvaluation:
    """Returns dynamic evaluation at the rate that is best on validation text.

    Args:
        config: The settings.
        text: What the model was trained on.
        valid: The validation text, whose beginning is read.
        prefix: `<eos>`.
        model: The model.
    """
    statistics = gradient_statistics(
        model, text, config.batch_size, config.window, prefix=prefix, most_windows=50
    )
    choices = [
        DynamicEvaluation(statistics, rate, _DYNAMIC_DECAY, _DYNAMIC_EPSILON)
        for rate in _DYNAMIC_RATES
    ]

    def nll(choice: DynamicEvaluation) -> float:
        first = valid[:_CHOSEN_ON]
        found = target_log_probs(
            model, first, 1, config.window, prefix=prefix, dynamic=choice
        )
        return -float(found.mean())

    losses = [nll(choice) for choice in choices]
    return choices[int(np.nanargmin(losses))]


def stored_n_gram(
    config: LanguageConfig,
    text: np.ndarray,
    vocabulary_size: int,
    batches: ContiguousBatches,
    path: pathlib.Path,
    temperature: float,
) -> TeacherPredictions:
    """Returns what the n-gram of a text says of it, at a temperature."""
    if path.exists():
        return TeacherPredictions(path)
    return TeacherPredictions.write(
        n_gram_teacher(text, vocabulary_size),
        batches,
        path,
        k=config.k,
        temperature=temperature,
    )


def n_gram_teacher(text: np.ndarray, vocabulary_size: int) -> KneserNey:
    """Returns the n-gram of a text, with a floor."""
    return KneserNey(_ORDER).fit(text, vocabulary_size).with_floor(_FLOOR)
