"""How long Table 3.2 would take with an encoder of the thesis' size."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import tensorflow as tf

from experiments.kit.bert_base import BERT_BASE, PIECES
from experiments.kit.seed_list import SETS
from experiments.kit.timing import (
    Step,
    median_seconds,
    projected_seconds,
    train_function_step,
)
from experiments.seed_transformer.config import ARMS, TransformerConfig
from experiments.seed_transformer.encoders import classifier
from rlm_tf.data.text.special_tokens import ENCODER_RESERVED
from rlm_tf.layers import TransformerEncoder

# Rows of steps that are timed; a step of a run has more.
_ROWS = (2, 8)
# Of all documents no training sees these.
_HELD_OUT = 0.15


def project(config: TransformerConfig, seed: int) -> dict[str, Any]:
    """Returns seconds of a document, and hours of each set and arm of one seed.

    Args:
        config: Its `encoder`, if that is a checkpoint of BERT, gives the size; else
            that of BERT-base.
        seed: Of weights and of the tokens, which are random.
    """
    encoder = (
        TransformerEncoder.from_checkpoint(config.encoder)
        if (pathlib.Path(config.encoder) / "config.json").is_file()
        else TransformerEncoder(PIECES, **BERT_BASE, seed=seed)
    )
    names = ("a", "b", "c", "d")
    model = classifier(config, encoder, None, names, None, seed)
    rng = np.random.default_rng(seed)
    shape = (_ROWS[-1], config.length)
    tokens = tf.constant(
        rng.integers(len(ENCODER_RESERVED), encoder.vocabulary_size, shape, np.int32)
    )

    def step_of(rows: int) -> Step:
        numbers = tf.range(rows)
        batch = (tokens[:rows], numbers), numbers % len(names)
        return train_function_step(model, [batch])

    said = tf.function(lambda: model(tokens, training=False))
    learnt = (
        projected_seconds(step_of, config.batch_size, _ROWS, config.project_steps)
        / config.batch_size
    )
    read = median_seconds(lambda: said().numpy(), config.project_steps) / _ROWS[-1]
    return {
        "layers": encoder.num_layers,
        "width": encoder.width,
        "length": config.length,
        "learnt_seconds": learnt,
        "read_seconds": read,
        "hours": {
            name: {
                arm: _seconds(config, name, arm, learnt, read) / 3600
                for arm in config.arms
            }
            for name in config.sets
        },
    }


def _seconds(
    config: TransformerConfig, name: str, arm: str, learnt: float, read: float
) -> float:
    """Returns what an arm takes, from the thesis' numbers of documents.

    Args:
        config: The settings.
        name: Of `SETS`.
        arm: Of `ARMS`.
        learnt: Seconds of a document in training.
        read: Of one that is predicted.
    """
    documents, _, labelled, *_ = SETS[name].published
    pool, known = ((1 - _HELD_OUT) * each for each in (documents, labelled))
    selects = ARMS[arm]["select"] != "all"
    base = config.fraction * known if selects else known
    sizes = [known] * selects + [base]
    for iteration in range(1, config.iterations + 1):
        share = config.share * iteration / config.iterations
        sizes.append(base + share * (pool - base))
    # Behind each training all of the pool is predicted; words are replaced by a pass
    # of the masked model over labelled documents. Who paraphrases is not counted.
    replaced = known * read if ARMS[arm].get("reads") == "replaced" else 0.0
    return config.epochs * sum(sizes) * learnt + len(sizes) * pool * read + replaced
