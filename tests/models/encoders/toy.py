"""Small encoders and masked batches for tests."""

from __future__ import annotations

import numpy as np

from rlm_tf.data import mask_tokens
from rlm_tf.layers import TransformerEncoder

VOCABULARY = 20


def texts(rows: int = 6, length: int = 10, seed: int = 0) -> np.ndarray:
    """Returns `[CLS] pieces [SEP]`, padded, int32 `[rows, length]`."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(5, VOCABULARY, [rows, length]).astype(np.int32)
    tokens[:, 0] = 2
    ends = rng.integers(length // 2, length, rows)
    tokens[np.arange(rows), ends] = 3
    tokens[np.arange(length) > ends[:, None]] = 0
    return tokens


def masked(tokens: np.ndarray, ratio: float = 0.3, seed: int = 0) -> tuple:
    """Returns a batch of `fit()`."""
    found = mask_tokens(
        tokens,
        (tokens == 2) | (tokens == 3),
        padding=tokens == 0,
        mask_id=4,
        vocabulary_size=VOCABULARY,
        ratio=ratio,
        seed=seed,
    )
    return tokens, found.tokens.numpy(), found.positions.numpy().astype(np.int32)


def encoder(width: int = 4, num_layers: int = 1, **options) -> TransformerEncoder:
    """Returns an encoder with weights far from zero."""
    sizes = {"feed_forward": 6, "embedding_width": 4, "num_heads": 2, "dropout": 0.0}
    options = {"initializer_range": 0.5, **sizes, **options}
    return TransformerEncoder(VOCABULARY, num_layers=num_layers, width=width, **options)
