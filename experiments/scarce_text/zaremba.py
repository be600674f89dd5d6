"""Published models of all of Penn Treebank: Zaremba et al. (2014), and with IMM."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from experiments.scarce_text.arms import ARMS, CHOSEN
from experiments.scarce_text.building import matched
from rlm_tf.data import Corpus, Noising
from rlm_tf.models import (
    InBatchContexts,
    InducedModelMatching,
    RecurrentLanguageModel,
)

# Section 4.1 there: width, dropout, window, epochs, initialisation, the epochs that the
# first rate is kept for, and what it is divided by after each.
_ZAREMBA: dict[str, dict[str, Any]] = {
    "small": {
        "width": 200,
        "dropout": 0.0,
        "window": 20,
        "epochs": 13,
        "scale": 0.1,
        "kept": 4,
        "divided": 2.0,
    },
    "medium": {
        "width": 650,
        "dropout": 0.5,
        "window": 35,
        "epochs": 39,
        "scale": 0.05,
        "kept": 6,
        "divided": 1.2,
    },
}
# What arms add, as the study has chosen it: IMM in batch, or noise.
_ADDED: dict[str, dict[str, Any]] = {
    "imm": {"orders": ARMS["imm-2345"].orders, **CHOSEN["imm-2345"]},
    "noising": CHOSEN["noising"],
}
_CLIP, ROWS = 5.0, 20


def zaremba_settings(name: str) -> dict[str, Any]:
    """Returns the settings of an arm of `PUBLISHED`, `zaremba-SIZE[-ADDED]`."""
    _, size, *added = name.split("-")
    found = dict(_ZAREMBA[size])
    for each in added:
        found |= _ADDED[each]
    return found


def zaremba_rate(name: str, epoch: int) -> float:
    """Returns the learning rate of an epoch, from 0 on."""
    published = zaremba_settings(name)
    return float(published["divided"] ** -max(0, epoch + 1 - published["kept"]))


def zaremba_model(
    name: str, corpus: Corpus, text: np.ndarray, seed: int
) -> keras.Model:
    """Returns the compiled model of an arm of `PUBLISHED`."""
    published, size = zaremba_settings(name), len(corpus.vocabulary)
    options: dict[str, Any] = {
        "clip_norm": _CLIP,
        # The rate and the norm are of losses summed over a window.
        "loss_scale": float(published["window"]),
    }
    model: keras.Model = RecurrentLanguageModel(
        size,
        published["width"],
        2,
        dropout=published["dropout"],
        initializer_scale=published["scale"],
        forget_bias=0.0,
        seed=seed,
        **options,
    )
    if "coefficient" in published:
        model = InducedModelMatching(
            model,
            matched(published["orders"], published["coefficient"], text, size),
            InBatchContexts(),
            **options,
        )
    model.compile(keras.optimizers.SGD(1.0))
    return model


def zaremba_noise(name: str, corpus: Corpus, text: np.ndarray, seed: int) -> Any:
    """Returns what replaces words of an arm's batches, or None."""
    published = zaremba_settings(name)
    if "gamma0" not in published:
        return None
    size = len(corpus.vocabulary)
    gamma = published["gamma0"]
    return Noising(text, size, kind="bigram-kn", gamma0=gamma, seed=seed)
