"""The search spaces of Melis (2023): Tables 2.4, 2.5 and 2.6, and T_max."""

from __future__ import annotations

import math
from typing import Any

from experiments.kit.ranges import Range, Space

_RATES: Space = {
    "learning_rate": Range(1e-3, 4e-3, log=True),
    "l2": Range(5e-6, 1e-3, log=True),
}
_GATES: Space = {
    "rounds": Range(0, 6, integer=True),
    # Zero and less mean full rank.
    "rank": Range(-20, 100, integer=True),
}
_WORDS: Space = {
    **_RATES,
    # From 1 on the embedding is as wide as the layers; the table has 0 for 0.01.
    "embedding_ratio": Range(0.01, 2.0),
    "input_dropout": Range(0.0, 0.9),
    "layer_dropout": Range(0.0, 0.95),
    "state_dropout": Range(0.0, 0.8),
    "output_dropout": Range(0.0, 0.95),
}
_ENWIK8: Space = {
    **_RATES,
    "input_dropout": Range(0.0, 0.2),
    "layer_dropout": Range(0.0, 0.2),
    "state_dropout": Range(0.0, 0.25),
    "output_dropout": Range(0.0, 0.25),
}
_CHRONO: Space = {"longest": Range(math.exp(2), math.exp(5), log=True)}

SPACES: dict[str, Space] = {
    # Table 2.4, without and with what is tuned for the Mogrifier only.
    "lstm": _WORDS,
    "mogrifier": {**_WORDS, **_GATES},
    # Table 2.5.
    "enwik8-lstm": _ENWIK8,
    "enwik8-mogrifier": {**_ENWIK8, **_GATES},
    # Chapter 4 tunes T_max of Chrono initialisation, too.
    "chapter4": {**_WORDS, **_GATES, **_CHRONO},
    "chapter4-enwik8": {**_ENWIK8, **_GATES, **_CHRONO},
}

# What each of them sets besides.
_RESIDUAL = {"connections": "residual", "optimizer": "radam"}
FIXED: dict[str, dict[str, Any]] = {
    "lstm": {"rounds": 0, "rank": 0},
    "enwik8-lstm": {"rounds": 0, "rank": 0},
    "chapter4": _RESIDUAL,
    "chapter4-enwik8": _RESIDUAL,
}

# Table 2.6: dynamic evaluation, of words and of characters.
_DYNAMIC: Space = {
    "learning_rate": Range(1e-6, 1e-3, log=True),
    "decay": Range(1e-6, 1e-2, log=True),
    "epsilon": Range(1e-8, 1e-2, log=True),
}
DYNAMIC_SPACES: dict[str, Space] = {
    "dynamic-words": {"window": Range(1, 20, integer=True), **_DYNAMIC},
    "dynamic-characters": {"window": Range(1, 50, integer=True), **_DYNAMIC},
}
