"""An encoder: embeddings and blocks in which every token sees all of its row."""

from __future__ import annotations

import inspect
import pathlib
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, check_option
from rlm_tf.layers.transformer.admin import AdminRule, admin_scale
from rlm_tf.layers.transformer.encoder_embedding import (
    EncoderEmbedding,
    check_embedding,
)
from rlm_tf.layers.transformer.keras_hub_weights import (
    copy_weights,
    options_of,
    read_backbone,
)
from rlm_tf.layers.transformer.position_bias import PositionBias
from rlm_tf.layers.transformer.position_buckets import BucketRule
from rlm_tf.layers.transformer.residual_profile import profile
from rlm_tf.layers.transformer.transformer_block import NORMS, TransformerBlock
from rlm_tf.seeds import Seeds

ENCODER_POSITIONS = ("t5", "absolute", "both", "rotary")
RESIDUAL_SCALINGS = ("none", "admin")


@keras.saving.register_keras_serializable("rlm_tf")
class TransformerEncoder(keras.layers.Layer):
    """Maps texts to a vector for each token, as BERT does.

    Args:
        vocabulary_size: V.
        num_layers: Blocks.
        width: D.
        num_heads: H, which divides D.
        feed_forward: Width of the networks between; None: 4 D.
        embedding_width: E; None: D. If it is another, a map from E to D follows the
            embeddings, as in ELECTRA.
        num_segments: Texts of a row that are told apart; 0: none are.
        max_length: Most tokens of a row with absolute positions.
        dropout: Rate on embeddings, on what attention and networks give, and on the
            weights of attention.
        positions: "t5": a bias for each bucket of distances, one table for all layers
            (Raffel et al. 2020); "absolute": embeddings, as BERT; "both"; "rotary".
        norm: "post", as BERT, or "pre", with another normalisation behind all blocks.
        residual_scaling: "admin": residual connections have learnt weights that begin
            with `admin_scale`, or what `profile_residuals` measures; "none".
        admin_rule: Of `admin_scale`.
        num_buckets: Of "t5": see `relative_position_buckets`, as the next two.
        max_distance: Likewise.
        bucket_rule: Its `variant`.
        position_slope: Of "t5", `slope` of `PositionBias`: if positive, heads begin by
            looking at neighbours. A small encoder then leaves what frequency knows of a
            masked word some hundreds of steps sooner.
        activation: "gelu", or "gelu_tanh", as the published BERT.
        epsilon: Of the normalisations.
        initializer_range: Standard deviation of the first weights.
        padding_id: Of tokens that are none.
        embedding: Embeddings to share; None: it has its own. Files do not know.
        seed: Of initialisation and dropout.
        **kwargs: Of `keras.layers.Layer`.

    Attributes:
        embedding: The `EncoderEmbedding`, which encoders of one V and E may share.

    Raises:
        ValueError: If a size, rate or name is out of range, or Admin is asked of
            normalisation that comes first.
    """

    def __init__(
        self,
        vocabulary_size: int,
        *,
        num_layers: int,
        width: int,
        num_heads: int,
        feed_forward: int | None = None,
        embedding_width: int | None = None,
        num_segments: int = 0,
        max_length: int = 512,
        dropout: float = 0.1,
        positions: str = "t5",
        norm: str = "post",
        residual_scaling: str = "none",
        admin_rule: AdminRule = "log",
        num_buckets: int = 32,
        max_distance: int = 128,
        bucket_rule: BucketRule = "t5",
        position_slope: float = 0.0,
        activation: str = "gelu",
        epsilon: float = 1e-6,
        initializer_range: float = 0.02,
        padding_id: int = 0,
        embedding: EncoderEmbedding | None = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.width = width
        self.num_heads = num_heads
        self.feed_forward = feed_forward
        self.embedding_width = embedding_width
        self.num_segments = num_segments
        self.max_length = max_length
        self.dropout = dropout
        self.positions = positions
        self.norm = norm
        self.residual_scaling = residual_scaling
        self.admin_rule = admin_rule
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.bucket_rule = bucket_rule
        self.position_slope = position_slope
        self.activation = activation
        self.epsilon = epsilon
        self.initializer_range = initializer_range
        self.padding_id = padding_id
        self.seed = seed
        self._check_arguments()
        self._create_layers(Seeds(seed), embedding)

    def _check_arguments(self) -> None:
        name = type(self).__name__
        for argument in ("vocabulary_size", "num_layers", "width", "max_length"):
            check_integer(name, argument, getattr(self, argument), 1)
        if self.embedding_width is not None:
            check_integer(name, "embedding_width", self.embedding_width, 1)
        check_option(name, "positions", self.positions, ENCODER_POSITIONS)
        check_option(name, "norm", self.norm, NORMS)
        check_option(name, "residual_scaling", self.residual_scaling, RESIDUAL_SCALINGS)
        if self.residual_scaling == "admin" and self.norm != "post":
            raise ValueError(
                f'{name}: `residual_scaling="admin"` needs `norm="post"`, found '
                f"{self.norm!r}."
            )
        check_integer(name, "padding_id", self.padding_id, 0)

    def _create_layers(self, seeds: Seeds, embedding: EncoderEmbedding | None) -> None:
        policy = self.dtype_policy

        def normal() -> keras.initializers.Initializer:
            return keras.initializers.TruncatedNormal(
                stddev=self.initializer_range, seed=seeds.next()
            )

        own = self.embedding_options(seeds.next())
        if embedding is not None:
            check_embedding(type(self).__name__, own, embedding)
        self.embedding = embedding or EncoderEmbedding(**own, name="embedding")
        if self.embedding.width != self.width:
            self.projection = keras.layers.Dense(
                self.width,
                kernel_initializer=normal(),
                dtype=policy,
                name="projection",
            )
            self.projection.build((None, None, self.embedding.width))
        if self.positions in ("t5", "both"):
            self.position_bias = PositionBias(
                self.num_heads,
                num_buckets=self.num_buckets,
                max_distance=self.max_distance,
                variant=self.bucket_rule,
                initializer=normal(),
                slope=self.position_slope,
                dtype=policy,
                name="position_bias",
            )
            self.position_bias.build()
        omega = None
        if self.residual_scaling == "admin":
            omega = admin_scale(2 * self.num_layers, rule=self.admin_rule)
        self.blocks = []
        for index in range(self.num_layers):
            block = TransformerBlock(
                self.width,
                self.num_heads,
                self.max_length,
                hidden_width=self.feed_forward,
                causal=False,
                positions="rotary" if self.positions == "rotary" else "none",
                dropout=self.dropout,
                attention_weights_dropout=self.dropout,
                norm=self.norm,
                residual_scale=omega,
                activation=self.activation,
                epsilon=self.epsilon,
                kernel_initializer=normal(),
                seed=seeds.next(),
                dtype=policy,
                name=f"block_{index}",
            )
            block.build((None, None, self.width))
            self.blocks.append(block)
            setattr(self, block.name, block)  # tf.train.Checkpoint reads no lists.
        if self.norm == "pre":
            self.final_norm = keras.layers.LayerNormalization(
                epsilon=self.epsilon, dtype=policy, name="final_norm"
            )
            self.final_norm.build((None, None, self.width))
        self.built = True

    def embedding_options(self, seed: int) -> dict[str, Any]:
        """Returns the arguments of the embeddings that the encoder needs."""
        return {
            "vocabulary_size": self.vocabulary_size,
            "width": self.embedding_width or self.width,
            "max_length": self.most_tokens,
            "num_segments": self.num_segments,
            "dropout": self.dropout,
            "epsilon": self.epsilon,
            "initializer_range": self.initializer_range,
            "seed": seed,
            "dtype": self.dtype_policy,
        }

    def with_embedding(self, embedding: EncoderEmbedding) -> TransformerEncoder:
        """Returns an encoder with these weights but for the embeddings.

        Args:
            embedding: Its embeddings, shared with others or not.

        Raises:
            ValueError: If they are of another size.
        """
        own = {"dtype": self.dtype_policy, "embedding": embedding}
        encoder = type(self)(**{**self.get_config(), **own})
        for layer, other in zip(self.own_layers, encoder.own_layers, strict=True):
            other.set_weights(layer.get_weights())
        return encoder

    @property
    def most_tokens(self) -> int | None:
        """Most tokens of a row; None: positions have no table, rows no limit."""
        return self.max_length if self.positions in ("absolute", "both") else None

    @property
    def own_layers(self) -> list[keras.layers.Layer]:
        """All layers but the embeddings."""
        names = ("projection", "position_bias", "final_norm")
        found = [getattr(self, name) for name in names if hasattr(self, name)]
        return [*found, *self.blocks]

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the parts have their weights."""

    # === Computation ===

    def call(
        self,
        tokens: tf.Tensor,
        segments: tf.Tensor | None = None,
        visible: tf.Tensor | None = None,
        places: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf.Tensor:
        """Encodes texts.

        Args:
            tokens: int `[B, T]`; padding is seen by nobody, and what is returned for it
                means nothing.
            segments: int `[B, T]`, the text that a token is of; None: the first.
            visible: bool `[B, T, S]`, tokens that each token may see besides; None:
                all.
            places: int `[T]`, where tokens are; None: one behind another.
            training: Whether dropout acts.

        Returns:
            `[B, T, D]`.
        """
        return self.hidden_states(tokens, segments, visible, places, training)[-1]

    def hidden_states(
        self,
        tokens: tf.Tensor,
        segments: tf.Tensor | None = None,
        visible: tf.Tensor | None = None,
        places: tf.Tensor | None = None,
        training: bool = False,
    ) -> list[tf.Tensor]:
        """Returns what each layer gives, `[B, T, D]` each; the last is that of `call`.

        Arguments as those of `call`.
        """
        hidden = self.embedded(tokens, segments, places, training)
        places = tf.range(tf.shape(tokens)[1]) if places is None else places
        seen, bias = self.seen(tokens, visible), self.bias_of(places)
        found = []
        for block in self.blocks:
            hidden = block(
                hidden, visible=seen, bias=bias, places=places, training=training
            )
            found.append(hidden)
        if self.norm == "pre":
            found[-1] = self.final_norm(hidden)
        return found

    def embedded(
        self,
        tokens: tf.Tensor,
        segments: tf.Tensor | None = None,
        places: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns what the first block reads, `[B, T, D]`."""
        hidden = self.embedding(tokens, segments, places, training=training)
        if self.embedding.width != self.width:
            hidden = self.projection(hidden)
        return hidden

    def padding(self, tokens: tf.Tensor) -> tf.Tensor:
        """Returns which tokens are none, bool `[B, T]`."""
        return tf.equal(tokens, tf.cast(self.padding_id, tokens.dtype))

    def seen(self, tokens: tf.Tensor, visible: tf.Tensor | None = None) -> tf.Tensor:
        """Returns which tokens may be seen, bool `[B, T]`, or by which, `[B, T, S]`."""
        present = ~self.padding(tokens)
        if visible is None:
            return present
        return tf.cast(visible, tf.bool) & present[:, tf.newaxis]

    def bias_of(self, places: tf.Tensor) -> tf.Tensor | None:
        """Returns what is added to the scores of tokens at places `[T]`, or None."""
        if self.positions not in ("t5", "both"):
            return None
        return self.position_bias(places)

    def profile_residuals(
        self, tokens: tf.Tensor, segments: tf.Tensor | None = None
    ) -> np.ndarray:
        """Sets the weights of residual connections by a batch; before training.

        Args:
            tokens: int `[B, T]`.
            segments: int `[B, T]` or None.

        Returns:
            The omegas, float64 `[2 num_layers]`, see `residual_profile.profile`.

        Raises:
            ValueError: If there is no Admin, or no token that is no padding.
        """
        return profile(self, tokens, segments)

    # === Checkpoints ===

    @classmethod
    def from_keras_hub(
        cls, backbone: Any, *, rows: np.ndarray | None = None, **options: Any
    ) -> TransformerEncoder:
        """Returns an encoder with the weights of a `keras_hub.models.BertBackbone`.

        Args:
            backbone: The backbone. Its pooled output is left out.
            rows: Which token of the backbone each of the encoder is, int `[V]`
                (`bert_vocabulary`); None: the same tokens.
            **options: Others than those of the backbone, such as `dropout`.

        Raises:
            ValueError: If it is another model.
        """
        encoder = cls(**{**options_of(backbone, rows), **options})
        copy_weights(backbone, encoder, rows)
        return encoder

    @classmethod
    def from_checkpoint(
        cls, folder: str | pathlib.Path, **options: Any
    ) -> TransformerEncoder:
        """Returns an encoder with the weights of a published BERT; see `read_bert`.

        `folder` has Hugging Face's layout, or KerasHub's; options: `from_keras_hub`.

        Raises:
            FileNotFoundError, ValueError: If it is none that KerasHub reads.
        """
        return cls.from_keras_hub(read_backbone(folder), **options)

    # === Config ===

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return (*input_shape, self.width)

    def get_config(self) -> dict[str, Any]:
        given = inspect.signature(TransformerEncoder.__init__).parameters
        names = [name for name in given if name not in ("self", "embedding", "kwargs")]
        own = {name: getattr(self, name) for name in names}
        return {**super().get_config(), **own, "embedding": None}
