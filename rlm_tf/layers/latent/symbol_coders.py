"""Encoder and decoder of single symbols, the synthetic task of Melis (2023, 5.7.1)."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_shapes, checked_ids, known_ids
from rlm_tf.layers.basic.token_embedding import TokenEmbedding
from rlm_tf.layers.latent.flat_latents import check_examples, flat_latents
from rlm_tf.layers.output.softmax_output import SoftmaxOutput
from rlm_tf.seeds import Seeds


@keras.saving.register_keras_serializable("rlm_tf")
class SymbolEncoder(keras.layers.Layer):
    """Maps a symbol to features: an embedding and two dense layers with tanh.

    Args:
        num_symbols: V.
        units: Width of the embedding and of both layers.
        seed: Of the initialisation.
        **kwargs: Of `keras.layers.Layer`.

    Call arguments:
        symbols: int `[B]`.

    Returns:
        Features `[B, units]`.
    """

    def __init__(
        self, num_symbols: int, units: int = 128, *, seed: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        check_integer("SymbolEncoder", "num_symbols", num_symbols, 2)
        check_integer("SymbolEncoder", "units", units, 1)
        self.num_symbols = num_symbols
        self.units = units
        self.output_size = units
        self.seed = seed
        seeds = Seeds(seed, self)
        self.embedding = TokenEmbedding(
            num_symbols,
            units,
            initializer=_normal(seeds),
            dtype=self.dtype_policy,
        )
        self.embedding.build((None,))
        self.hidden = [_tanh(self, units, seeds) for _ in range(2)]
        for layer in self.hidden:
            layer.build((None, units))
        self.built = True

    def call(self, symbols: tf.Tensor, training: bool = False) -> tf.Tensor:
        symbols = _known("SymbolEncoder", self.num_symbols, symbols)
        features = self.embedding(symbols)
        for layer in self.hidden:
            features = layer(features)
        return features

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_symbols": self.num_symbols,
            "units": self.units,
            "seed": self.seed,
        }


@keras.saving.register_keras_serializable("rlm_tf")
class SymbolDecoder(keras.layers.Layer):
    """Log-probability of symbols given latents: dense layers with tanh and a softmax.

    Latents go into the first layer as they are; with `embed`, through a linear map
    without bias before it, which for one-hot latents is the sum of one embedding for
    each. Of the softmax over V only the normaliser is computed, not the probabilities.

    Args:
        num_symbols: V.
        latent_size: Entries of one example's latents.
        units: Width of all layers.
        num_layers: Dense layers: 2 for normal latents, 1 for embedded ones.
        embed: Whether latents are embedded.
        seed: Of the initialisation.
        **kwargs: Of `keras.layers.Layer`.

    Call arguments:
        latents: `[K, B, ...]`.
        symbols: int `[B]`.

    Returns:
        `ln p(x|z)` `[K, B]`, nats, single precision or wider.

    Raises:
        ValueError: If latents have not `latent_size` entries, or symbols are not ids,
            one for each example.
    """

    def __init__(
        self,
        num_symbols: int,
        latent_size: int,
        units: int = 128,
        *,
        num_layers: int = 2,
        embed: bool = False,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for name, value, least in (
            ("num_symbols", num_symbols, 2),
            ("latent_size", latent_size, 1),
            ("units", units, 1),
            ("num_layers", num_layers, 1),
        ):
            check_integer("SymbolDecoder", name, value, least)
        self.num_symbols = num_symbols
        self.latent_size = latent_size
        self.units = units
        self.num_layers = num_layers
        self.embed = embed
        self.seed = seed
        seeds = Seeds(seed, self)
        width = latent_size
        self.embedding: keras.layers.Dense | None = None
        if embed:
            self.embedding = keras.layers.Dense(
                units,
                use_bias=False,
                kernel_initializer=_normal(seeds),
                dtype=self.dtype_policy,
            )
            self.embedding.build((None, width))
            width = units
        self.hidden = [_tanh(self, units, seeds) for _ in range(num_layers)]
        for layer in self.hidden:
            layer.build((None, width))
            width = units
        self.output_layer = SoftmaxOutput(
            num_symbols,
            kernel_initializer=_glorot(seeds),
            dtype=self.dtype_policy,
        )
        self.output_layer.build((None, units))
        self.built = True

    def call(
        self, latents: tf.Tensor, symbols: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        symbols = _known("SymbolDecoder", self.num_symbols, symbols)
        check_shapes("SymbolDecoder", symbols=(symbols, "B"))
        check_examples("SymbolDecoder", latents, symbols=symbols)
        features = self.features(latents)
        targets = tf.broadcast_to(symbols[tf.newaxis], tf.shape(features)[:-1])
        targets.set_shape(features.shape[:-1])
        return -self.output_layer(features, targets)

    def logits(self, latents: tf.Tensor) -> tf.Tensor:
        """Maps latents `[..., *event]` to logits `[..., V]`; two leading axes."""
        return self.output_layer(self.features(latents))

    def features(self, latents: tf.Tensor) -> tf.Tensor:
        """Maps latents `[K, B, ...]` to what the softmax sees, `[K, B, units]`."""
        flat = flat_latents("SymbolDecoder", latents, self.latent_size)
        features = tf.cast(flat, self.compute_dtype)
        if self.embedding is not None:
            features = self.embedding(features)
        for layer in self.hidden:
            features = layer(features)
        return features

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_symbols": self.num_symbols,
            "latent_size": self.latent_size,
            "units": self.units,
            "num_layers": self.num_layers,
            "embed": self.embed,
            "seed": self.seed,
        }


def _known(name: str, num_symbols: int, symbols: Any) -> tf.Tensor:
    remedy = "Count them from 0"
    symbols = checked_ids(name, "symbols", symbols)
    return known_ids(name, num_symbols, "symbols", symbols, remedy=remedy)


def _normal(seeds: Seeds) -> keras.initializers.Initializer:
    return keras.initializers.RandomNormal(stddev=1.0, seed=seeds.next())


def _glorot(seeds: Seeds) -> keras.initializers.Initializer:
    return keras.initializers.GlorotUniform(seed=seeds.next())


def _tanh(owner: Any, units: int, seeds: Seeds) -> keras.layers.Dense:
    return keras.layers.Dense(
        units,
        activation="tanh",
        kernel_initializer=_glorot(seeds),
        dtype=owner.dtype_policy,
    )
