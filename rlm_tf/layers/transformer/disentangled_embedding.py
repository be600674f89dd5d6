"""Embeddings of a detector that begin with those of its generator."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.layers.transformer.encoder_embedding import EncoderEmbedding
from rlm_tf.untracked import Untracked


@keras.saving.register_keras_serializable("rlm_tf")
class DisentangledEmbedding(EncoderEmbedding):
    """Gradient-disentangled sharing (He et al. 2021, arXiv 2111.09543).

    The embedding of a token is the generator's, which no gradient reaches from here,
    plus one of its own that begins at zero. Positions, segments and normalisation are
    its own.

    Args:
        vocabulary_size: See `EncoderEmbedding`, as all that is not named here.
        width: Likewise.
        base: The generator's; None: there is none. Files do not hold it: whoever holds
            both gives it.
        **kwargs: Of `EncoderEmbedding`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        width: int,
        *,
        base: EncoderEmbedding | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocabulary_size, width, **kwargs)
        self.token_embedding.embeddings.assign(
            tf.zeros_like(self.token_embedding.embeddings.value)
        )
        self._base = Untracked(base)

    @property
    def base(self) -> EncoderEmbedding | None:
        """The generator's embeddings."""
        return self._base.value

    def embedded_tokens(self, tokens: tf.Tensor) -> tf.Tensor:
        own = super().embedded_tokens(tokens)
        if self.base is None:
            return own
        return own + tf.stop_gradient(self.base.embedded_tokens(tokens))

    def matrix(self) -> tf.Tensor:
        own = super().matrix()
        if self.base is None:
            return own
        return own + tf.stop_gradient(self.base.matrix())

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "base": None}
