"""What identifies a training run, and where it runs."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf
from absl import flags

from rlm_tf import distribution
from rlm_tf.data import Corpus


def text_digest(corpus: Corpus) -> str:
    """Returns a digest of the texts and the vocabulary of a corpus."""
    return corpus.sha256()


def settings_of(config: Any, corpus: Corpus) -> dict[str, Any]:
    """Returns what an earlier run must share with this one to count as the same."""
    return {**dataclasses.asdict(config), "text_sha256": text_digest(corpus)}


def training_text(corpus: Corpus, fraction: float, batch_size: int) -> np.ndarray:
    """Returns the first part of the training text, which `--fraction` asks for.

    Raises:
        ValueError: If that leaves less than a token for every row of a batch.
    """
    text = corpus.train[: int(len(corpus.train) * fraction)]
    if len(text) < batch_size:
        raise ValueError(
            f"{corpus.name}: of {len(corpus.train):,} tokens to train on, --fraction="
            f"{fraction:g} leaves {len(text)}; expected one for each of --batch_size="
            f"{batch_size} rows at least. Take a longer text or a larger fraction."
        )
    return text


def strategy_for(batch_size: int, name: str) -> tf.distribute.Strategy:
    """Returns the strategy of `--strategy`, whose replicas share a batch evenly.

    Raises:
        ValueError: If they cannot.
    """
    tpu = flags.FLAGS.tpu if "tpu" in flags.FLAGS else None
    strategy = distribution.strategy(name, tpu=tpu)
    replicas = strategy.num_replicas_in_sync
    if batch_size % replicas:
        raise ValueError(
            f"--batch_size must be a multiple of the {replicas} replicas, found "
            f"{batch_size}."
        )
    return strategy
