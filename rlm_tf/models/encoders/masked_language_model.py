"""A masked language model: an encoder that finds hidden tokens again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.layers.output.masked_token_head import MaskedTokenHead
from rlm_tf.layers.transformer.transformer_encoder import TransformerEncoder
from rlm_tf.metrics.declared import declared
from rlm_tf.metrics.perplexity import Perplexity
from rlm_tf.models.encoders.masked_batch import check_jit, masked_batch
from rlm_tf.objective_model.objective_model import ObjectiveModel
from rlm_tf.objective_model.term import TermLoss, TermSpec
from rlm_tf.objectives.replaced_tokens import generator_loss
from rlm_tf.seeds import Seeds


@keras.saving.register_keras_serializable("rlm_tf")
class MaskedLanguageModel(ObjectiveModel):
    """Predicts masked tokens from all others (Devlin et al. 2019, arXiv 1810.04805).

    `fit()` takes batches `((tokens, masked_tokens, positions),)`, as
    `ResumableBatches(Segments(...), transform=Masking(...))` gives them, with segments
    behind the positions if rows have two texts. The softmax, tied to the embeddings, is
    computed for masked tokens alone, whose number differs from batch to batch.

    Logs `nll` (nats a masked token), its `perplexity`, and `accuracy`.

    Args:
        encoder: The encoder.
        max_positions: Most masked tokens of a row (`max_masked`), which `jit_compile`
            has to know; None: any number, and no work for others.
        clip_norm: See `ObjectiveModel`, as those of `**kwargs`.
        seed: Of the first weights of the head.
        **kwargs: Of `ObjectiveModel` and `keras.Model`.

    Raises:
        ValueError: If `encoder` is none.
    """

    def __init__(
        self,
        encoder: TransformerEncoder,
        *,
        max_positions: int | None = None,
        clip_norm: float | None = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        if not isinstance(encoder, TransformerEncoder):
            raise ValueError(
                f"{type(self).__name__}: `encoder` must be an "
                f"rlm_tf.layers.TransformerEncoder, found {type(encoder).__name__}."
            )
        kwargs = {"dtype": encoder.dtype_policy, **kwargs}
        super().__init__(clip_norm=clip_norm, **kwargs)
        if max_positions is not None:
            check_integer(type(self).__name__, "max_positions", max_positions, 1)
        self.encoder = encoder
        self.max_positions = max_positions
        self.seed = seed
        self.head = MaskedTokenHead(
            encoder.vocabulary_size,
            encoder.embedding.width,
            activation=encoder.activation,
            epsilon=encoder.epsilon,
            initializer_range=encoder.initializer_range,
            seed=Seeds(seed, self).next(),
            dtype=self.dtype_policy,
            name="head",
        )
        self.head.build((None, encoder.width))
        self.accuracy_metric = declared(keras.metrics.Mean(name="accuracy"), "up")
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the parts have their weights."""

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Configures training as `keras.Model.compile`.

        Raises:
            ValueError: If `jit_compile` is asked for without `max_positions`.
        """
        check_jit(type(self).__name__, kwargs.get("jit_compile"), self.max_positions)
        super().compile(*args, **kwargs)

    # === Computation ===

    @property
    def vocabulary_size(self) -> int:
        """V."""
        return self.encoder.vocabulary_size

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns the logits `[B, T, V]` of every token.

        Args:
            inputs: Tokens int `[B, T]`, `(tokens, segments)`, or a batch of `fit()`, of
                which the masked tokens are read.
            training: Whether dropout acts.
        """
        parts = inputs if isinstance(inputs, tuple | list) else (inputs,)
        shown, segments = parts[0], parts[1] if len(parts) == 2 else None
        if len(parts) > 2:
            shown, segments = parts[1], parts[3] if len(parts) > 3 else None
        features = self.encoder(shown, segments, training=training)
        return self.head(features, self.encoder.embedding.matrix())

    def logits_at(
        self,
        shown: tf.Tensor,
        places: tf.Tensor,
        segments: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns the logits `[N, V]` of some tokens.

        Args:
            shown: int `[B, T]`.
            places: Row and column of each, int `[N, 2]`.
            segments: int `[B, T]` or None.
            training: Whether dropout acts.
        """
        return self.logits(self.features_at(shown, places, segments, training))

    def features_at(
        self,
        shown: tf.Tensor,
        places: tf.Tensor,
        segments: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns what the softmax reads, `[N, E]`; arguments as of `logits_at`."""
        features = self.encoder(shown, segments, training=training)
        return self.head.transform(tf.gather_nd(features, places))

    def logits(self, features: tf.Tensor) -> tf.Tensor:
        """Returns logits `[..., V]` of what the softmax reads, `[..., E]`."""
        kernel = self.encoder.embedding.matrix()
        return self.head.output_layer(features, tied_kernel=kernel)

    # === Objective ===

    @property
    def term_specs(self) -> list[TermSpec]:
        return [TermSpec("nll")]

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> Mapping[str, TermLoss]:
        batch = masked_batch(type(self).__name__, x, y, self.vocabulary_size)
        places, weights = batch.places(self.max_positions)
        logits = self.logits_at(batch.shown, places, batch.segments, training)
        tokens = tf.gather_nd(batch.tokens, places)
        loss, extra = generator_loss(logits, tokens, weights)
        self.accuracy_metric.update_state(extra.correct, weights)
        return {"nll": TermLoss(loss, weights)}

    def make_term_metrics(self, name: str) -> list[keras.metrics.Metric]:
        return [keras.metrics.Mean(name=name), Perplexity()]

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "max_positions": self.max_positions,
            "seed": self.seed,
        }
