"""How long Table 3 would take with an encoder of its size."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from experiments.imm_bert.building import build
from experiments.imm_bert.config import ARMS, FinetuneConfig
from experiments.kit.bert_base import BERT_BASE, PIECES
from experiments.kit.timing import Step, projected_seconds, train_function_step
from rlm_tf.data.text.special_tokens import ENCODER_RESERVED
from rlm_tf.layers import TransformerEncoder
from rlm_tf.models import MaskedLanguageModel, SequenceClassifier

# Rows of steps that are timed, and tokens of a row; a step of a run has more rows.
_ROWS = (2, 8)
_LENGTH, _MASKED = 128, 19
_EPOCHS = 3
# Training examples of GLUE's tasks in Table 3, as published; MRPC as GLUE cuts it.
_EXAMPLES = {"cola": 8551, "mrpc": 3668, "qnli": 104_743, "rte": 2490}
_MASK = ENCODER_RESERVED.index("[MASK]")


def project(arm: str, config: FinetuneConfig, seed: int) -> dict[str, Any]:
    """Returns seconds of a step of an arm, and hours of three epochs of each task.

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
    size = encoder.vocabulary_size
    rng = np.random.default_rng(seed)
    shape = (_ROWS[-1], _LENGTH)
    tokens = rng.integers(len(ENCODER_RESERVED), size, shape, np.int32)
    positions = np.zeros_like(tokens)
    positions[:, 1 : 1 + _MASKED] = 1
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

    seconds = projected_seconds(step_of, config.batch_size, _ROWS, config.project_steps)
    return {
        "layers": encoder.num_layers,
        "width": encoder.width,
        "pieces": size,
        "timed_rows": list(_ROWS),
        "step_seconds": seconds,
        "hours": {
            task: _EPOCHS * number / config.batch_size * seconds / 3600
            for task, number in _EXAMPLES.items()
        },
    }
