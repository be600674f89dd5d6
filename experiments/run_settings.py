"""What identifies a training run, and where it runs."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np
import tensorflow as tf

from rlm_tf import distribution
from rlm_tf.data import Corpus


def text_digest(corpus: Corpus) -> str:
    """Returns a digest of the texts and the vocabulary of a corpus."""
    digest = hashlib.sha256("\n".join(corpus.vocabulary.tokens).encode())
    for tokens in (corpus.train, corpus.valid, corpus.test):
        digest.update(np.int64(len(tokens)).tobytes())
        digest.update(np.ascontiguousarray(tokens, np.int32).tobytes())
    return digest.hexdigest()


def settings_of(config: Any, corpus: Corpus) -> dict[str, Any]:
    """Returns what an earlier run must share with this one to count as the same."""
    return {**dataclasses.asdict(config), "text_sha256": text_digest(corpus)}


def strategy_for(batch_size: int, name: str) -> tf.distribute.Strategy:
    """Returns the strategy of `--strategy`, whose replicas share a batch evenly.

    Raises:
        ValueError: If they cannot.
    """
    strategy = distribution.strategy(name)
    replicas = strategy.num_replicas_in_sync
    if batch_size % replicas:
        raise ValueError(
            f"--batch_size must be a multiple of the {replicas} replicas, found "
            f"{batch_size}."
        )
    return strategy
