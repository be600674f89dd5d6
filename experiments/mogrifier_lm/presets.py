"""Published settings, by name, beside small ones.

The tuned values are those of the configuration files that were published with Melis et
al. (2020); what they do not say, and their code does, is in `RunConfig` and
`experiments.kit.recurrent_model`. Chapter 4 of Melis (2023) gives epochs, dropout
samples, windows and layers, and no tuned values: those presets take chapter 2's where
the data set has some.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from experiments.kit.recurrent_config import RunConfig

DROPOUTS = ("input_dropout", "layer_dropout", "state_dropout", "output_dropout")
_BUDGETS = {
    "ptb": 24_000_000,
    "wikitext-2": 35_000_000,
    "ptb-char": 24_000_000,
    "mwc-en": 24_000_000,
    "mwc-fi": 24_000_000,
}
# Of each data set: steps a turn, turns, and turns without gain until averaging starts;
# rows, window, layers, and training tokens, from which the epochs follow.
_TURNS = {
    "ptb": (200, 1000, 50, 64, 70, 2, 929_589),
    "wikitext-2": (200, 1000, 50, 64, 70, 2, 2_088_628),
    "ptb-char": (200, 500, 25, 64, 150, 2, 5_017_482),
    # The larger form has about twice the 15.6 and 6.4 million characters published.
    "mwc-en": (200, 500, 25, 64, 150, 2, 31_000_000),
    "mwc-fi": (200, 500, 25, 64, 150, 2, 13_000_000),
    "enwik8": (400, 100, 10, 128, 500, 4, 90_000_000),
}


def _published(
    corpus: str,
    learning_rate: float,
    l2: float,
    dropouts: tuple[float, float, float, float],
    gates: tuple[int, int] = (0, 0),
    ratio: float = 1.0,
    budget: int | None = None,
) -> RunConfig:
    """Returns a tuned configuration of chapter 2.

    Args:
        corpus: Name of the data set.
        learning_rate: Of Adam without momentum.
        l2: Penalty, in the scale of the summed-over-time loss.
        dropouts: Input, inter-layer, state and output dropout.
        gates: Rounds and rank of the Mogrifier.
        ratio: Width of the embedding over that of the layers.
        budget: Number of parameters, where a data set has several.
    """
    steps, turns, trigger, batch_size, window, num_layers, tokens = _TURNS[corpus]
    an_epoch = -(-tokens // (batch_size * window))
    return RunConfig(
        corpus=corpus,
        rounds=gates[0],
        rank=gates[1],
        budget=budget or _BUDGETS[corpus],
        embedding_ratio=ratio,
        num_layers=num_layers,
        tied=corpus in ("ptb", "wikitext-2"),
        mixture_components=2 if corpus == "wikitext-2" else 1,
        **dict(zip(DROPOUTS, dropouts, strict=True)),  # type: ignore[arg-type]
        batch_size=batch_size,
        window=window,
        epochs=max(1, round(steps * turns / an_epoch)),
        learning_rate=learning_rate,
        l2=l2,
        averaging="trigger",
        period=steps,
        trigger=trigger,
    )


_CHAPTER_2 = {
    "ptb-lstm": _published(
        "ptb", 0.0030369, 2.4908e-4, (0.62756, 0.30699, 0.36922, 0.69017)
    ),
    "ptb-mogrifier": _published(
        "ptb", 0.0023, 2.5235e-4, (0.72908, 0.29098, 0.38729, 0.71567), (5, 84)
    ),
    "wt2-lstm": _published(
        "wikitext-2",
        0.0031839,
        2.3064e-4,
        (0.6091, 0.09075, 0.2714, 0.34846),
        ratio=0.35308,
    ),
    "wt2-mogrifier": _published(
        "wikitext-2",
        0.0032878,
        1.8995e-4,
        (0.54691, 0.19882, 0.22138, 0.34767),
        (6, 48),
        0.19932,
    ),
    "ptb-char-mogrifier": _published(
        "ptb-char", 0.0037396, 2.5558e-4, (0.2786, 0.07376, 0.17119, 0.23474), (4, 24)
    ),
    "mwc-en-lstm": _published(
        "mwc-en",
        0.0038051,
        7.8253e-6,
        (0.24803, 0.0474, 0.04695, 0.06201),
        ratio=0.16763,
    ),
    "mwc-en-mogrifier": _published(
        "mwc-en",
        0.0014344,
        9.2454e-5,
        (0.22379, 0.0878, 0.09549, 0.00521),
        (6, 78),
        0.48783,
    ),
    "mwc-fi-lstm": _published(
        "mwc-fi", 0.0038728, 3.359e-5, (0.00043, 0.03679, 0.15784, 0.21673)
    ),
    "mwc-fi-mogrifier": _published(
        "mwc-fi", 0.002, 9.608e-5, (0.06996, 0.11572, 0.17592, 0.2215), (5, 100)
    ),
    "enwik8-48m-lstm": _published(
        "enwik8",
        0.0025167,
        2.5181e-5,
        (0.16279, 0.1195, 0.10368, 0.1386),
        budget=48_000_000,
    ),
    "enwik8-48m-mogrifier": _published(
        "enwik8",
        0.0010214,
        9.9338e-4,
        (0.0155, 0.00863, 0.04373, 0.13831),
        (6, 79),
        budget=48_000_000,
    ),
    "enwik8-96m-lstm": _published(
        "enwik8",
        0.0019752,
        5.8536e-5,
        (0.12337, 0.12637, 0.13063, 0.24847),
        budget=96_000_000,
    ),
    "enwik8-96m-mogrifier": _published(
        "enwik8",
        0.002248,
        4.4094e-5,
        (0.01591, 0.13786, 0.16487, 0.28785),
        (5, 61),
        budget=96_000_000,
    ),
}

# Epochs, dropout samples, rows, window and layers of chapter 4; where from its rates.
_CHAPTER_4: dict[str, tuple[str, dict[str, Any]]] = {
    "ptb": (
        "ptb-mogrifier",
        {"epochs": 400, "dropout_samples": 8, "batch_size": 128, "window": 70},
    ),
    "wt2": (
        "wt2-mogrifier",
        {"epochs": 250, "dropout_samples": 4, "batch_size": 128, "window": 70},
    ),
    "ptb-char": (
        "ptb-char-mogrifier",
        {"epochs": 100, "dropout_samples": 4, "batch_size": 128, "window": 200},
    ),
    "enwik8-48m": (
        "enwik8-48m-mogrifier",
        {"epochs": 200, "batch_size": 128, "window": 256, "num_layers": 6},
    ),
    "enwik8-96m": (
        "enwik8-96m-mogrifier",
        {"epochs": 200, "batch_size": 128, "window": 256, "num_layers": 6},
    ),
}


def _chapter_4(source: str, changes: dict[str, Any], cell: str) -> RunConfig:
    """Returns a setting of chapter 4: residuals, Chrono, RAdam, 2TA, no mixture.

    It stops early on 2TA, as the thesis does; after how many epochs it does not say.
    """
    return dataclasses.replace(
        _CHAPTER_2[source],
        cell=cell,
        connections="residual",
        mixture_components=1,
        # The middle, on a logarithmic scale, of what is tuned: e^2 to e^5.
        longest=33.1,
        optimizer="radam",
        averaging="2ta",
        period=0,
        stop_after=30,
        **changes,
    )


def _presets() -> dict[str, RunConfig]:
    presets = {
        # Nothing regularised; the rows of results are relative to it.
        "default": RunConfig(),
        # Under a minute: does everything run?
        "smoke": RunConfig(
            fraction=0.03,
            rounds=2,
            rank=2,
            budget=40_000,
            batch_size=8,
            window=12,
            epochs=2,
            input_dropout=0.1,
            state_dropout=0.1,
        ),
        # Minutes on two cores, on the embedded corpus.
        "small": RunConfig(
            rounds=5,
            rank=40,
            budget=1_500_000,
            epochs=12,
            learning_rate=0.002,
            l2=1e-4,
            input_dropout=0.5,
            layer_dropout=0.3,
            state_dropout=0.3,
            output_dropout=0.6,
        ),
        "paper": _CHAPTER_2["ptb-mogrifier"],
    }
    presets |= {f"paper-{name}": config for name, config in _CHAPTER_2.items()}
    for name, (source, changes) in _CHAPTER_4.items():
        for cell, label in (("lstm", "mogrifier"), ("rlstm", "mogrifier-rlstm")):
            config = _chapter_4(source, changes, cell)
            presets[f"paper4-{name}-{label}"] = config
            if name.startswith("enwik8"):
                # Chapter 4 treats text8 alike.
                name8 = name.replace("enwik8", "text8")
                presets[f"paper4-{name8}-{label}"] = dataclasses.replace(
                    config, corpus="text8"
                )
    return presets


PRESETS = _presets()
