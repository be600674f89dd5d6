"""Small latent-variable models of symbols and of sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.layers import (
    CategoricalLatents,
    Latents,
    LSTMCell,
    NormalLatents,
    SentenceDecoder,
    SentenceEncoder,
    SymbolDecoder,
    SymbolEncoder,
)
from rlm_tf.models import MonteCarloVAE

SYMBOLS = 7
X = np.array([3, 1, 6, 1], np.int32)
# The end of a sentence is 0; -1 is what comes after it.
SENTENCES = np.array(
    [[3, 1, 4, 0], [2, 0, -1, -1], [5, 5, 0, -1], [1, 0, -1, -1]], np.int32
)


def latents_of(estimator: str, **options: Any) -> Latents:
    """Latents that an estimator can train."""
    if estimator in ("reinforce", "vimco"):
        return CategoricalLatents(2, 3, seed=3, **options)
    return NormalLatents(4, seed=3, **options)


def _options(estimator: str, options: dict[str, Any]) -> dict[str, Any]:
    """Options of a model, with three samples and, where there is one, a lambda."""
    found = {"estimator": estimator, "num_samples": 3, "seed": 4, **options}
    if options.get("objective", "kl") in ("kl", "renyi"):
        found.setdefault("lambda_", 0.3)
    return found


def symbol_model(estimator: str = "dreg", **options: Any) -> MonteCarloVAE:
    """A model of symbols; `prior` says whether the prior is learnt."""
    latents = latents_of(estimator, trainable_prior=options.pop("prior", False))
    size = int(np.prod(latents.event_shape))
    embed = not latents.is_reparameterised
    return MonteCarloVAE(
        SymbolEncoder(SYMBOLS, 5, seed=1),
        latents,
        SymbolDecoder(SYMBOLS, size, 5, num_layers=1, embed=embed, seed=2),
        **_options(estimator, options),
    )


def sentence_model(estimator: str = "dreg", **options: Any) -> MonteCarloVAE:
    """A model of sentences with all kinds of dropout."""
    latents = latents_of(estimator)
    decoder = SentenceDecoder(
        SYMBOLS,
        int(np.prod(latents.event_shape)),
        LSTMCell(5, state_dropout=options.pop("state_dropout", 0.3)),
        embedding_width=4,
        tied=True,
        input_dropout=options.pop("input_dropout", 0.3),
        output_dropout=options.pop("output_dropout", 0.3),
        shared_dropout=options.pop("shared_dropout", True),
        seed=2,
    )
    return MonteCarloVAE(
        SentenceEncoder(SYMBOLS, LSTMCell(5), embedding_width=4, seed=1),
        latents,
        decoder,
        **_options(estimator, options),
    )


def assert_replicas_equal_one(
    two_replicas: tf.distribute.Strategy,
    make: Callable[[], keras.Model],
    data: tf.data.Dataset,
    *,
    rate: float = 0.5,
    epochs: int = 2,
) -> None:
    """Trains one model on two replicas and one on one device, and compares them."""

    def trained(model: keras.Model) -> tuple[list[np.ndarray], dict[str, list[float]]]:
        model.compile(keras.optimizers.SGD(rate))
        history = model.fit(data, epochs=epochs, verbose=0, shuffle=False).history
        return [weight.numpy() for weight in model.weights], history

    with two_replicas.scope():
        model = make()
    (together, ours), (alone, theirs) = trained(model), trained(make())
    for a, b in zip(together, alone, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-6)
    assert ours.keys() == theirs.keys()
    for name, values in ours.items():
        np.testing.assert_allclose(values, theirs[name], rtol=2e-5, atol=2e-6)
