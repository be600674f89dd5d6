"""A causal transformer that goes on from window to window of its streams."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_option
from rlm_tf.layers.basic.replica_dropout import ReplicaDropout
from rlm_tf.layers.basic.token_embedding import TokenEmbedding
from rlm_tf.layers.output.softmax_output import SoftmaxOutput
from rlm_tf.layers.transformer.cache import Cache
from rlm_tf.layers.transformer.transformer_block import TransformerBlock
from rlm_tf.models.language.dropout_samples import LayerStates
from rlm_tf.models.language.stateful_language_model import StatefulLanguageModel
from rlm_tf.seeds import Seeds


@keras.saving.register_keras_serializable("rlm_tf")
class TransformerLanguageModel(StatefulLanguageModel):
    """Embedding, causal transformer blocks with normalisation first, softmax.

    A token sees, in every block, the `context_length` tokens before it, in whichever
    windows its stream was cut: the keys and values of the last tokens are the states
    that it carries from window to window, without a gradient through them (as in Dai et
    al. 2019, arXiv 1901.02860). So training on short windows has long contexts,
    evaluation gives one number for every window, and generation runs each token once.
    Positions are relative, which makes the cache of a stream of any length exact.

    How it is called and what it remembers: `StatefulLanguageModel`.

    Args:
        vocabulary_size: V.
        width: D.
        num_layers: Number of blocks.
        num_heads: H, which divides D.
        context_length: C, tokens before a token that it sees.
        hidden_width: Of the feed-forward networks; None: 4 D.
        positions: "rotary" or "learnt", see `TransformerBlock`.
        tied: Whether the softmax uses the embedding matrix.
        dropout: Rate on embedded inputs and on what attention and networks give.
        output_dropout: Rate before the softmax; None: `dropout`.
        seed: Of initialisation and dropout.
        **kwargs: Of `StatefulLanguageModel` (`clip_norm`, `loss_scale`, `l2`,
            `bits_per_character`, `dropout_samples`) and of `keras.Model`.

    Raises:
        ValueError: If a size or rate is out of range or does not fit.
    """

    def __init__(
        self,
        vocabulary_size: int,
        width: int = 256,
        num_layers: int = 4,
        num_heads: int = 4,
        context_length: int = 128,
        *,
        hidden_width: int | None = None,
        positions: str = "rotary",
        tied: bool = True,
        dropout: float = 0.0,
        output_dropout: float | None = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        name = type(self).__name__
        check_integer(name, "vocabulary_size", vocabulary_size, 1)
        check_integer(name, "num_layers", num_layers, 1)
        check_option(name, "positions", positions, ("rotary", "learnt"))
        for argument, rate in (
            ("dropout", dropout),
            ("output_dropout", output_dropout),
        ):
            if rate is not None and not 0 <= rate < 1:
                raise ValueError(
                    f"{name}: `{argument}` must lie in [0, 1), found {rate}."
                )
        self.vocabulary_size = vocabulary_size
        self.width = width
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.context_length = context_length
        self.hidden_width = hidden_width
        self.positions = positions
        self.tied = tied
        self.dropout = dropout
        self.output_dropout = output_dropout
        self.seed = seed
        self._create_networks(Seeds(seed))
        cached = context_length * width
        self.create_memory([[cached, cached, context_length]] * num_layers)

    def _create_networks(self, seeds: Seeds) -> None:
        policy = self.dtype_policy

        def normal() -> keras.initializers.Initializer:
            return keras.initializers.VarianceScaling(
                1.0, "fan_out", "truncated_normal", seeds.next()
            )

        def lose(rate: float, name: str) -> ReplicaDropout:
            return ReplicaDropout(rate, seed=seeds.next(), dtype=policy, name=name)

        # The matrix is [V, D]: its rows are what one token or one logit gets.
        self.embedding = TokenEmbedding(
            self.vocabulary_size,
            self.width,
            initializer=normal(),
            dtype=policy,
            name="embedding",
        )
        self.embedding.build((None, None))
        self.embedding_dropout = lose(self.dropout, "embedding_dropout")
        self.blocks = []
        for index in range(self.num_layers):
            block = TransformerBlock(
                self.width,
                self.num_heads,
                self.context_length,
                hidden_width=self.hidden_width,
                positions=self.positions,
                dropout=self.dropout,
                # As many maps are added to the embedding.
                initializer_scale=(2 * self.num_layers) ** -0.5,
                seed=seeds.next(),
                dtype=policy,
                name=f"block_{index}",
            )
            block.build((None, None, self.width))
            self.blocks.append(block)
            # tf.train.Checkpoint does not look into lists of a Keras model.
            setattr(self, block.name, block)
        self.final_norm = keras.layers.LayerNormalization(
            epsilon=1e-5, dtype=policy, name="final_norm"
        )
        self.final_norm.build((None, None, self.width))
        rate = self.dropout if self.output_dropout is None else self.output_dropout
        self.final_dropout = lose(rate, "final_dropout")
        self.output_layer = SoftmaxOutput(
            self.vocabulary_size,
            own_kernel=not self.tied,
            kernel_initializer=normal(),
            dtype=policy,
            name="output",
        )
        self.output_layer.build((None, None, self.width))
        self.built = True

    # === Computation ===

    def run_window(
        self,
        tokens: tf.Tensor,
        states: LayerStates,
        training: bool,
        collected: list[tf.Tensor] | None = None,
    ) -> tuple[tf.Tensor, LayerStates]:
        inputs = self.embedding(tokens)
        # Rows of the matrix have a norm of 1.
        inputs = inputs * tf.cast(self.width**0.5, inputs.dtype)
        hidden = self.embedding_dropout(inputs, training=training)
        new_states = []
        for block, (keys, values, present) in zip(self.blocks, states, strict=True):
            shape = [-1, self.context_length, self.width]
            cache = Cache(tf.reshape(keys, shape), tf.reshape(values, shape), present)
            hidden, cache = block(hidden, cache, training=training)
            flat = [-1, self.context_length * self.width]
            new_states.append(
                [
                    tf.stop_gradient(tf.reshape(cache.keys, flat)),
                    tf.stop_gradient(tf.reshape(cache.values, flat)),
                    cache.present,
                ]
            )
            if collected is not None:
                collected.append(tf.transpose(hidden, [1, 0, 2]))
        features = self.final_dropout(self.final_norm(hidden), training=training)
        return features, new_states

    def tied_kernel(self) -> tf.Tensor | None:
        return self.embedding.matrix() if self.tied else None

    @property
    def feature_width(self) -> int:
        return self.width

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "width": self.width,
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "context_length": self.context_length,
            "hidden_width": self.hidden_width,
            "positions": self.positions,
            "tied": self.tied,
            "dropout": self.dropout,
            "output_dropout": self.output_dropout,
            "seed": self.seed,
        }
