"""The models of the arms, compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from experiments.kit.recurrent_config import RunConfig
from experiments.kit.recurrent_model import build_model
from experiments.scarce_text.arms import ARMS, DECOUPLED_SCALE, Arm, Values
from experiments.scarce_text.config import ScarceConfig
from rlm_tf.data import Corpus, Noising
from rlm_tf.models import (
    InBatchContexts,
    InducedModelMatching,
    OwnContexts,
    TransformerLanguageModel,
)
from rlm_tf.restricted import KneserNey

_DROPOUTS = ("input_dropout", "layer_dropout", "state_dropout", "output_dropout")
_CLIP_NORM = 10.0
# Of the Transformer: heads, and tokens before a token that it sees.
_HEADS, _CONTEXT = 4, 70


def compiled_model(
    config: ScarceConfig,
    name: str,
    values: Values,
    corpus: Corpus,
    text: np.ndarray,
    seed: int,
    steps: int,
) -> keras.Model:
    """Returns the compiled model of an arm.

    Args:
        config: Of the grid.
        name: Of the arm.
        values: Its settings.
        corpus: The corpus.
        text: What is trained on.
        seed: Of weights and dropout.
        steps: Of all training.
    """
    arm, size = ARMS[name], len(corpus.vocabulary)
    model = _language_model(config, arm, values, size, seed)
    if arm.orders:
        model = _matched(config, arm, values, model, corpus, text, steps)
    model.compile(_optimizer(arm, values))
    return model


def noise_of(name: str, values: Values, text: np.ndarray, size: int, seed: int) -> Any:
    """Returns what replaces words of an arm's batches, or None."""
    if not ARMS[name].noising:
        return None
    return Noising(text, size, kind="bigram-kn", gamma0=values["gamma0"], seed=seed)


def _language_model(
    config: ScarceConfig, arm: Arm, values: Values, size: int, seed: int
) -> keras.Model:
    scale = float(config.window)
    if arm.architecture == "transformer":
        return TransformerLanguageModel(
            size,
            config.transformer_width,
            config.transformer_layers,
            _HEADS,
            _CONTEXT,
            dropout=values["dropout"],
            seed=seed,
            clip_norm=_CLIP_NORM,
            loss_scale=scale,
        )
    mogrifier = arm.architecture == "mogrifier"
    width = values.get("width", config.width)
    run = RunConfig(
        seed=seed,
        width=width,
        num_layers=config.num_layers,
        rounds=config.rounds if mogrifier else 0,
        rank=config.rank if mogrifier else 0,
        window=config.window,
        batch_size=config.batch_size,
        clip_norm=_CLIP_NORM,
        l2=0.0 if values["decoupled"] else values["decay"],
        **{rate: values[rate] for rate in _DROPOUTS},
    )
    return build_model(run, size, width)


def _matched(
    config: ScarceConfig,
    arm: Arm,
    values: Values,
    model: keras.Model,
    corpus: Corpus,
    text: np.ndarray,
    steps: int,
) -> InducedModelMatching:
    counted = corpus.train if arm.counted else text
    contexts = {
        "batch": InBatchContexts,
        "own": OwnContexts,
        "bank": lambda: InBatchContexts(bank_size=config.bank_size),
    }[arm.contexts]()
    pairs = matched(arm.orders, values["coefficient"], counted, len(corpus.vocabulary))
    if arm.falling:
        decay = keras.optimizers.schedules.PolynomialDecay
        pairs = [(n_gram, decay(weight, steps, 0.0)) for n_gram, weight in pairs]
    return InducedModelMatching(model, pairs, contexts)


def matched(
    orders: Sequence[int], coefficient: float, text: np.ndarray, size: int
) -> list[tuple[KneserNey, Any]]:
    """Returns n-grams of a text, each with its share of lambda.

    Args:
        orders: Of the n-grams.
        coefficient: Lambda.
        text: What is counted.
        size: Of the vocabulary.
    """
    share = coefficient / len(orders)
    return [(KneserNey(order).fit(text, size), share) for order in orders]


def _optimizer(arm: Arm, values: Values) -> keras.optimizers.Optimizer:
    rate = values["learning_rate"]
    if arm.architecture == "transformer":
        if "warmup" in values:
            warmup = keras.optimizers.schedules.PolynomialDecay
            rate = warmup(0.0, values["warmup"], rate)
        return keras.optimizers.AdamW(rate, weight_decay=0.01, beta_2=0.98)
    own = {"beta_1": 0.0, "epsilon": 1e-8}
    if values["decoupled"]:
        decay = DECOUPLED_SCALE * values["decay"]
        return keras.optimizers.AdamW(rate, weight_decay=decay, **own)
    return keras.optimizers.Adam(rate, **own)
