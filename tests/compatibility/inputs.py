"""What models and their parts are called on: drawn once, in an order that stays."""

from __future__ import annotations

import numpy as np

from tests.conformance import bmi_rows
from tests.conformance.row import VOCABULARY

RNG = np.random.default_rng(11)
# Few words, so that short contexts come back within a batch.
TEXT = (RNG.integers(VOCABULARY, size=(3, 9)) % 4).astype(np.int32)
TOKENS, NEXT = TEXT[:, :-1], TEXT[:, 1:]
COUNTS = (RNG.uniform(size=TOKENS.shape) < 0.9).astype(np.float32)
BATCH = ((TOKENS, np.ones(3, np.int32)), NEXT, COUNTS)
SENTENCES = np.array([[3, 5, 1, -1], [2, 2, 0, 1], [4, 1, -1, -1]], np.int32)
PAIRS_OF_SENTENCES = type(bmi_rows.PAIRS)(
    *(values[[0, 1, 0]] for values in bmi_rows.PAIRS)
)
SYMBOLS = np.array([3, 1, 5], np.int32)
ONES = np.ones(3, np.float32)
FEATURES = RNG.uniform(0, 2, (3, 3)).astype(np.float32)
LABELS = np.array([0, 1, 1], np.int32)
STREAM = (RNG.integers(VOCABULARY, size=120) % 5).astype(np.int32)
CONTEXTS = np.array([[1, 2], [0, 4], [3, 3], [5, 0]], np.int32)
STATES = np.array([[0, 3, 5, 1], [2, 2, 4, 0]], np.int32)
TRAJECTORIES = (
    STATES,
    {
        "actions": (STATES % 3).astype(np.int32),
        "rewards": RNG.uniform(size=(2, 4)).astype(np.float32),
    },
    np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.float32),
)
EXAMPLES = (FEATURES, LABELS, np.array([1.0, 0.5, 2.0], np.float32))
SENTENCE_BATCH = (SENTENCES, np.zeros(3, np.int32), ONES)
SYMBOL_BATCH = (SYMBOLS, np.zeros(3, np.int32), ONES)
PAIRS = (TOKENS, TOKENS[:, ::-1].copy())
SEQUENCE = RNG.normal(size=(2, 3, 4)).astype(np.float32)
LATENTS = RNG.normal(size=(3, 2, 4)).astype(np.float32)
