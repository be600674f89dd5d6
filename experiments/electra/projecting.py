"""How long pre-training and fine-tuning at the thesis' sizes would take."""

from __future__ import annotations

import statistics
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from experiments.electra.config import TABLE_A2, ElectraConfig, table_a2
from experiments.kit.encoder_finetuning import DROPOUT, Recipe, adamax
from experiments.kit.timing import Step, projected_seconds, train_function_step
from rlm_tf.data.text.special_tokens import ENCODER_RESERVED
from rlm_tf.models import Electra, MaskedLanguageModel, SequenceClassifier
from rlm_tf.models.encoders.other_dropout import with_dropout

# Rows of steps that are timed; a step of the thesis has as many more as its batch.
_ROWS = (1, 3)
# Of eight graphics processors: dense half-precision operations a second (NVIDIA A100,
# by its data sheet), and the share of them that training is taken to reach.
_PROCESSORS, _OPERATIONS, _SHARE = 8, 312e12, 0.4
# Training examples of GLUE's tasks in Table 1.1, as published.
_EXAMPLES = {
    "mnli": 392_702,
    "qqp": 363_846,
    "qnli": 104_743,
    "sst2": 67_349,
    "cola": 8551,
    "rte": 2490,
    "mrpc": 3668,
    "stsb": 5749,
}


def project(model: keras.Model, config: ElectraConfig) -> dict[str, Any]:
    """Returns seconds of a step, and hours of all steps, here and by operations.

    Args:
        model: Compiled.
        config: Its settings; tokens are random.
    """
    masked = round(config.mask_ratio * config.length)

    def step_of(rows: int) -> Step:
        tokens = _random_tokens(rows, config.length, config.pieces)
        positions = np.zeros_like(tokens)
        positions[:, 1 : 1 + masked] = 1
        shown = np.where(positions, ENCODER_RESERVED.index("[MASK]"), tokens)
        batch = ((tf.constant(tokens), tf.constant(shown, tf.int32), positions),)
        return train_function_step(model, [batch] * 2)

    seconds = projected_seconds(step_of, config.batch_size, _ROWS, config.project_steps)
    operations = _operations(model, config) * config.batch_size * config.length
    on_processors = operations / (_PROCESSORS * _OPERATIONS * _SHARE)
    tuning = _tuning(model, config) if isinstance(model, Electra) else {}
    return {
        "timed_rows": list(_ROWS),
        **tuning,
        "step_seconds": seconds,
        "hours_here": seconds * config.steps / 3600,
        "operations_of_a_step": operations,
        "hours_on_processors": on_processors * config.steps / 3600,
    }


def _tuning(model: Electra, config: ElectraConfig) -> dict[str, Any]:
    """Returns hours of Table A.2's search over all tasks of Table 1.1."""
    length = min(TABLE_A2["length"], config.length)
    encoder = with_dropout(model.encoder(), DROPOUT)
    classifier = SequenceClassifier(encoder, 2, clip_norm=1.0)
    decayed = Recipe(weight_decay=TABLE_A2["weight_decays"][-1])
    classifier.compile(adamax(decayed))

    def step_of(rows: int) -> Step:
        tokens = tf.constant(_random_tokens(rows, length, config.pieces))
        batch = (tokens, tf.zeros_like(tokens)), tf.range(rows) % 2
        return train_function_step(classifier, [batch])

    # Batches of Table A.2 are of many sizes; of these the middle.
    settings = table_a2(config.layers)
    rows = statistics.median_low(each["batch_size"] for each in settings)
    step = projected_seconds(step_of, rows, _ROWS, config.project_steps)
    seconds = step / rows
    passes = sum(each["epochs"] for each in settings)
    a_pass = seconds * sum(_EXAMPLES.values()) / 3600
    return {
        "tuning": {
            "example_seconds": seconds,
            "settings": len(settings),
            "hours_of_a_pass": a_pass,
            "hours_of_all": passes * a_pass,
        }
    }


def _random_tokens(rows: int, length: int, pieces: int) -> np.ndarray:
    """Returns words, int32 `[rows, length]`, of one seed."""
    rng = np.random.default_rng(0)
    return rng.integers(len(ENCODER_RESERVED), pieces, (rows, length), np.int32)


def _operations(model: keras.Model, config: ElectraConfig) -> float:
    """Returns multiplications and additions of training on one token.

    Twice a weight forwards and four times backwards, for matrices of layers; attention
    to all tokens of a row; the softmax of masked tokens.
    """
    encoders = []
    if isinstance(model, MaskedLanguageModel):
        encoders = [model.encoder]
    elif isinstance(model, Electra):
        encoders = [model.generator.encoder, model.discriminator]
    total = 6 * config.mask_ratio * config.width * config.pieces
    for encoder in encoders:
        blocks = encoder.num_layers * 12 * encoder.width**2
        attention = encoder.num_layers * 2 * config.length * encoder.width
        total += 6 * (blocks + attention)
    return total
