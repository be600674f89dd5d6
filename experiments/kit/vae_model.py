"""Makes a latent-variable model from its settings."""

from __future__ import annotations

from typing import Any

import keras

from experiments.kit.vae_config import VaeConfig
from rlm_tf.layers import (
    CategoricalLatents,
    Latents,
    LSTMCell,
    NormalLatents,
    SentenceDecoder,
    SentenceEncoder,
    SymbolDecoder,
    SymbolEncoder,
    VectorQuantizer,
)
from rlm_tf.models import MonteCarloVAE, VectorQuantizedVAE


def build_model(
    config: VaeConfig, vocabulary_size: int, end_id: int = 0
) -> MonteCarloVAE | VectorQuantizedVAE:
    """Returns the model of a run, not compiled.

    Args:
        config: Its settings.
        vocabulary_size: Symbols or words.
        end_id: Id of the end of a sentence.
    """
    seed = 10 * config.seed
    size = {
        "normal": config.latent_size,
        "categorical": config.num_latents * config.num_categories,
        "quantised": config.num_latents * config.units,
    }[config.latents]
    if config.corpus:
        encoder, decoder = _of_sentences(config, vocabulary_size, size, end_id, seed)
    else:
        encoder, decoder = _of_symbols(config, vocabulary_size, size, seed)
    if config.latents == "quantised":
        quantizer = VectorQuantizer(
            config.num_latents,
            config.num_categories,
            config.units,
            decay=config.decay,
            seed=seed,
        )
        return VectorQuantizedVAE(
            encoder,
            quantizer,
            decoder,
            commitment=config.commitment,
            seed=seed + 3,
            l2=config.l2,
        )
    prior: dict[str, Any] = {"trainable_prior": config.trainable_prior, "seed": seed}
    latents: Latents = NormalLatents(config.latent_size, **prior)
    if config.latents == "categorical":
        latents = CategoricalLatents(config.num_latents, config.num_categories, **prior)
    return MonteCarloVAE(
        encoder,
        latents,
        decoder,
        objective=config.objective,  # type: ignore[arg-type]
        estimator=config.estimator,
        num_samples=config.counts,
        lambda_=config.lambda_,
        alpha=config.alpha,
        grouping=config.grouping,  # type: ignore[arg-type]
        baseline=_baseline_of(config),
        seed=seed + 3,
        l2=config.l2,
    )


def _baseline_of(config: VaeConfig) -> Any:
    """Returns the model's; the default of the flag is VIMCO's."""
    is_default = config.baseline == VaeConfig().baseline
    return None if is_default and config.estimator != "vimco" else config.baseline


def _of_symbols(
    config: VaeConfig, size: int, latent_size: int, seed: int
) -> tuple[keras.layers.Layer, keras.layers.Layer]:
    # What embeds latents makes one layer less of the decoder.
    embed = config.latents == "categorical"
    return (
        SymbolEncoder(size, config.units, seed=seed + 1),
        SymbolDecoder(
            size,
            latent_size,
            config.units,
            num_layers=2 if config.latents == "normal" else 1,
            embed=embed,
            seed=seed + 2,
        ),
    )


def _of_sentences(
    config: VaeConfig, size: int, latent_size: int, end_id: int, seed: int
) -> tuple[keras.layers.Layer, keras.layers.Layer]:
    return (
        SentenceEncoder(size, LSTMCell(config.units), seed=seed + 1),
        SentenceDecoder(
            size,
            latent_size,
            LSTMCell(config.units, state_dropout=config.state_dropout),
            end_id=end_id,
            input_dropout=config.input_dropout,
            output_dropout=config.output_dropout,
            shared_dropout=config.shared_dropout,
            seed=seed + 2,
        ),
    )
