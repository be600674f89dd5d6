"""How long Table 3 would take with an encoder of its size."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from experiments.imm_bert.building import build
from experiments.imm_bert.config import ARMS, FinetuneConfig
from experiments.kit.bert_base import BERT_BASE, PIECES
from experiments.kit.encoder_finetuning import Recipe, epochs_of
from experiments.kit.encoder_tasks import HELD_OUT
from experiments.kit.task_list import TASKS
from experiments.kit.timing import Step, projected_seconds, train_function_step
from rlm_tf.data import max_masked
from rlm_tf.data.text.special_tokens import ENCODER_RESERVED
from rlm_tf.layers import TransformerEncoder
from rlm_tf.models import MaskedLanguageModel, SequenceClassifier

# Rows of steps that are timed; a step of a run has more.
_ROWS = (2, 8)
# Training examples of the tasks in Table 3, as published; MRPC's own files.
_EXAMPLES = {"cola": 8551, "mrpc": 4076, "qnli": 104_743, "rte": 2490}
_MASK = ENCODER_RESERVED.index("[MASK]")


def project(arm: str, config: FinetuneConfig, seed: int) -> dict[str, Any]:
    """Returns seconds of a step of an arm, and hours of each task.

    A run has the epochs, the rows' length and the held-out examples of the others; what
    the looks at those take is not in it.

    Args:
        arm: Of `ARMS`.
        config: Its `checkpoint` gives the size; none: that of BERT-base.
        seed: Of weights and of the tokens, which are random.
    """
    encoder = (
        TransformerEncoder.from_checkpoint(config.checkpoint)
        if config.checkpoint
        else TransformerEncoder(PIECES, **BERT_BASE, seed=seed)
    )
    tasks = [task for task in config.tasks if task in _EXAMPLES]
    lengths = sorted({TASKS[task].length for task in tasks})
    seconds = {
        length: _seconds(arm, config, encoder, length, seed) for length in lengths
    }
    recipe = Recipe(config.rate, config.batch_size, steps=config.steps)
    steps = {
        task: math.ceil((1 - HELD_OUT) * _EXAMPLES[task] / config.batch_size)
        for task in tasks
    }
    epochs = {task: epochs_of(recipe, steps[task]) for task in tasks}
    return {
        "layers": encoder.num_layers,
        "width": encoder.width,
        "pieces": encoder.vocabulary_size,
        "timed_rows": list(_ROWS),
        # By the pieces of a row.
        "step_seconds": {str(length): each for length, each in seconds.items()},
        "epochs": epochs,
        "hours": {
            task: epochs[task] * steps[task] * seconds[TASKS[task].length] / 3600
            for task in tasks
        },
    }


def _seconds(
    arm: str,
    config: FinetuneConfig,
    encoder: TransformerEncoder,
    length: int,
    seed: int,
) -> float:
    """Returns the projected seconds of a step on rows of a length."""
    rng = np.random.default_rng(seed)
    shape = (_ROWS[-1], length)
    size = encoder.vocabulary_size
    tokens = rng.integers(len(ENCODER_RESERVED), size, shape, np.int32)
    positions = np.zeros_like(tokens)
    positions[:, 1 : 1 + max_masked(length)] = 1
    model: Any = SequenceClassifier(encoder, 2, clip_norm=1.0, seed=seed)
    if ARMS[arm]:
        model = build(
            arm,
            config,
            model,
            MaskedLanguageModel(encoder, seed=seed),
            text=tokens.ravel,
            rows=lambda: (tokens, np.zeros_like(tokens)),
            seed=seed,
        )
    model.compile(keras.optimizers.Adamax(config.rate, beta_2=0.98, epsilon=1e-6))
    inputs: tuple[Any, ...] = (tokens, np.zeros_like(tokens))
    if ARMS[arm]:
        inputs += (np.where(positions, _MASK, tokens).astype(np.int32), positions)

    def step_of(rows: int) -> Step:
        x = tuple(tf.constant(array[:rows]) for array in inputs)
        batch = x, tf.constant(np.arange(rows) % 2, tf.int32)
        return train_function_step(model, [batch])

    return projected_seconds(step_of, config.batch_size, _ROWS, config.project_steps)
