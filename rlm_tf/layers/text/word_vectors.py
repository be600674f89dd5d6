"""The vectors of words that encoders of documents begin with."""

from __future__ import annotations

from typing import Any

import keras

from rlm_tf.layers.basic.replica_dropout import ReplicaDropout
from rlm_tf.seeds import Seeds

_RANGE = 0.05


def word_vectors(
    vocabulary_size: int, width: int, dropout: float, seeds: Seeds, dtype: Any
) -> tuple[keras.layers.Embedding, ReplicaDropout]:
    """Returns an embedding of words, and the dropout on it, not built."""
    embedding = keras.layers.Embedding(
        vocabulary_size,
        width,
        embeddings_initializer=keras.initializers.RandomUniform(
            -_RANGE, _RANGE, seed=seeds.next()
        ),
        dtype=dtype,
        name="embedding",
    )
    lose = ReplicaDropout(dropout, seed=seeds.next(), dtype=dtype, name="dropout")
    return embedding, lose
