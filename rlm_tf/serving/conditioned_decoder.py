"""What an exported latent-variable model generates and draws with."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rlm_tf.layers import SentenceDecoder


class ConditionedDecoder:
    """A stepwise view of a decoder whose latents are given."""

    def __init__(self, decoder: SentenceDecoder, latents: tf.Tensor) -> None:
        self._decoder = decoder
        self._inputs = decoder.latent_inputs(latents[tf.newaxis])

    def zero_states(self, batch_size: int | tf.Tensor) -> Any:
        states = self._decoder.recurrent.cell.get_initial_state(batch_size)
        return self._inputs, list(states)

    def forward(self, tokens: tf.Tensor, states: Any) -> tuple[tf.Tensor, Any]:
        inputs, own = states
        features, own = self._decoder.features(tokens, inputs, own)
        return tf.transpose(features, [1, 0, 2]), (inputs, own)

    def output_logits(self, features: tf.Tensor) -> tf.Tensor:
        return self._decoder.logits(features)


class GivenSeed:
    """Stands for a seed generator where the seed is an argument."""

    def __init__(self, seed: tf.Tensor) -> None:
        self._seed = seed

    def next(self) -> tf.Tensor:
        return tf.stack([self._seed, 0])
