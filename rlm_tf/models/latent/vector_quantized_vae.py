"""The VQ-VAE, the baseline with discrete latents and a fixed rate."""

from __future__ import annotations

import math
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_range
from rlm_tf.layers.latent.vector_quantizer import Quantized, VectorQuantizer
from rlm_tf.models.latent.latent_variable_model import (
    LatentVariableModel,
    check_latent_size,
    check_layers,
    log_likelihood,
)
from rlm_tf.objective_model.term import TermLoss, TermSpec


@keras.saving.register_keras_serializable("rlm_tf")
class VectorQuantizedVAE(LatentVariableModel):
    """A deterministic encoder to L of C codes each (van den Oord et al. 2017).

    The prior is uniform and q(z|x) certain, so that KL(q(z|x) || p(z)) is `L ln C`
    whatever is learnt: `-ln p(x|z) + L ln C` bounds `-ln p(x)`. That is the metric
    `objective`; `commitment` keeps the encoder near its codes.

    Args:
        encoder: Layer or model, x to features `[B, F]`; F is its `output_size`.
        quantizer: The codes.
        decoder: Called on the chosen codes `[1, B, L, D]` and x (a functional model on
            the list of both) it gives `ln p(x|z)` `[1, B]`.
        commitment: Weight beta of the squared distance to the codes.
        seed: Of the map from features to what is quantised.
        **kwargs: Of `ObjectiveModel`.

    Raises:
        ValueError: If `commitment` is negative, `quantizer` something else, or the
            decoder is for codes of another size.
    """

    part_names = ("encoder", "quantizer", "decoder")

    def __init__(
        self,
        encoder: keras.layers.Layer,
        quantizer: VectorQuantizer,
        decoder: keras.layers.Layer,
        *,
        commitment: float = 0.25,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_layers("VectorQuantizedVAE", encoder=encoder, decoder=decoder)
        check_range("VectorQuantizedVAE", 0.0, math.inf, commitment=commitment)
        if not isinstance(quantizer, VectorQuantizer):
            raise ValueError(
                "VectorQuantizedVAE: `quantizer` must be a VectorQuantizer, found "
                f"{type(quantizer).__name__}."
            )
        event_shape = (quantizer.num_latents, quantizer.size)
        check_latent_size("VectorQuantizedVAE", decoder, "quantizer", event_shape)
        self.encoder = encoder
        self.quantizer = quantizer
        self.decoder = decoder
        self.commitment = commitment
        self.seed = seed
        self.head = keras.layers.Dense(
            quantizer.num_latents * quantizer.size,
            kernel_initializer=keras.initializers.GlorotUniform(seed=seed),
            dtype=self.dtype_policy,
        )
        width = getattr(encoder, "output_size", None)
        if width is not None:
            self.head.build((None, width))
            self.built = encoder.built and decoder.built

    @property
    def rate(self) -> float:
        """KL(q(z|x) || p(z)), nats: `L ln C`."""
        return self.quantizer.num_latents * math.log(self.quantizer.num_categories)

    def call(self, x: Any, training: bool = False, weights: Any = None) -> Quantized:
        """Returns what x is quantised to; `weights` `[B]` are of its rows."""
        features = self.head(self.encoder(x, training=training))
        shape = [-1, self.quantizer.num_latents, self.quantizer.size]
        vectors = tf.reshape(features, shape)
        found = self.quantizer(vectors, training=training, weights=weights)
        self.remember_input(x)
        if not self.decoder.built:
            self._decode(found, x)
        return found

    def run_parts(self, x: Any) -> None:
        self._decode(self(x), x)

    def _decode(self, found: Quantized, x: Any, training: bool = False) -> tf.Tensor:
        """Returns `ln p(x|z)` `[B]`, nats."""
        z = found.vectors[tf.newaxis]
        return log_likelihood("VectorQuantizedVAE", self.decoder, z, x, training)[0]

    def bound(
        self, x: Any, training: bool = False, weights: Any = None
    ) -> tuple[tf.Tensor, Quantized]:
        """Returns `-ln p(x|z) + L ln C` `[B]`, nats, and what x is quantised to."""
        found = self(x, training=training, weights=weights)
        return self.rate - self._decode(found, x, training), found

    @property
    def term_specs(self) -> list[TermSpec]:
        return [TermSpec("objective"), TermSpec("commitment", self.commitment)]

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> dict[str, TermLoss]:
        del y  # There is nothing but x.
        weights = self.row_weights(x, sample_weight)
        loss, found = self.bound(x, training, weights)
        return {
            "objective": TermLoss(loss, weights),
            "commitment": TermLoss(found.commitment, weights),
        }

    def get_config(self) -> dict[str, Any]:
        own = {"commitment": self.commitment, "seed": self.seed}
        return {**super().get_config(), **own}
