"""A language model of stacked recurrent layers."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.layers.basic.replica_dropout import ReplicaDropout
from rlm_tf.layers.basic.token_embedding import TokenEmbedding
from rlm_tf.layers.output.softmax_output import SoftmaxOutput
from rlm_tf.layers.recurrent.lstm_cell import LSTMCell
from rlm_tf.layers.recurrent.recurrent import Recurrent
from rlm_tf.layers.recurrent.recurrent_cell import RecurrentCell
from rlm_tf.models.language.dropout_samples import LayerStates
from rlm_tf.models.language.stateful_language_model import StatefulLanguageModel
from rlm_tf.seeds import SeededInitializers


@keras.saving.register_keras_serializable("rlm_tf")
class RecurrentLanguageModel(StatefulLanguageModel):
    """Embedding, stacked LSTM layers, softmax; maximum likelihood of next tokens.

    The model of Zaremba et al. (2014, arXiv 1409.2329) by default: dropout on the
    embedded inputs and on the outputs of every layer, with a fresh mask at every time
    step, never on the recurrent state; uniform initialisation of all weights, the bias
    of the softmax included; 1 added to the forget gate, whose bias starts at 0.

    How it is called and what it remembers: `StatefulLanguageModel`.

    Args:
        vocabulary_size: V.
        width: Width of the recurrent layers.
        num_layers: Number of recurrent layers.
        embedding_width: Width of the embedding; None means `width`.
        projection_width: Width of a linear map (no bias) between the last layer and the
            softmax; None means no such map.
        tied: Whether the softmax uses the embedding matrix.
        dropout: Rate on the outputs of every layer but the last, and the default of the
            other rates.
        input_dropout: Rate on the embedded inputs; None means `dropout`.
        output_dropout: Rate on the outputs of the last layer; None means `dropout`.
        initializer: For every weight but the biases of the recurrent layers, which
            start at 0: a Keras initialiser, or `"uniform"` for
            U(-`initializer_scale`, `initializer_scale`).
        initializer_scale: See `initializer`; otherwise unused.
        forget_bias: Added to the forget gates.
        use_output_bias: Whether the softmax has a bias.
        jit_loop: Whether XLA compiles the recurrent loop; see `Recurrent`.
        seed: Seed of initialisation and dropout.
        **kwargs: Of `StatefulLanguageModel` (`clip_norm`, `loss_scale`, `l2`,
            `bits_per_character`, `dropout_samples`) and of `keras.Model`.

    Raises:
        ValueError: If a size is not positive, a rate is not in [0, 1), or `tied` asks
            for one matrix of two different widths.
    """

    def __init__(
        self,
        vocabulary_size: int,
        width: int,
        num_layers: int,
        *,
        embedding_width: int | None = None,
        projection_width: int | None = None,
        tied: bool = False,
        dropout: float = 0.0,
        input_dropout: float | None = None,
        output_dropout: float | None = None,
        initializer: Any = "uniform",
        initializer_scale: float = 0.1,
        forget_bias: float = 1.0,
        use_output_bias: bool = True,
        jit_loop: bool | str = "auto",
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.width = width
        self.num_layers = num_layers
        self.embedding_width = embedding_width
        self.projection_width = projection_width
        self.tied = tied
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.output_dropout = output_dropout
        self.initializer = (
            initializer
            if initializer == "uniform"
            else keras.initializers.get(initializer)
        )
        self.initializer_scale = initializer_scale
        self.forget_bias = forget_bias
        self.use_output_bias = use_output_bias
        self.jit_loop = jit_loop
        self.seed = seed
        self._check_arguments()
        self._create_networks()
        self.create_memory([layer.cell.state_size for layer in self.recurrent_layers])

    def _check_arguments(self) -> None:
        name = type(self).__name__
        for argument in (
            "vocabulary_size",
            "width",
            "num_layers",
            "embedding_width",
            "projection_width",
        ):
            value = getattr(self, argument)
            optional = argument in ("embedding_width", "projection_width")
            if value is not None or not optional:
                check_integer(name, argument, value, 1)
        for argument in ("dropout", "input_dropout", "output_dropout"):
            value = getattr(self, argument)
            if value is not None and not 0 <= value < 1:
                raise ValueError(
                    f"{name}: `{argument}` must lie in [0, 1), found {value}."
                )
        embedding_width = self.embedding_width or self.width
        feature_width = self.projection_width or self.width
        if self.tied and embedding_width != feature_width:
            raise ValueError(
                f"{name}: with `tied`, the width before the softmax "
                f"(`projection_width` or `width`, here {feature_width}) must be that "
                f"of the embedding, {embedding_width}."
            )

    # === Networks ===

    def make_cell(self, initializers: SeededInitializers) -> RecurrentCell:
        """Returns a new cell; a subclass may return another kind."""
        return LSTMCell(
            self.width,
            forget_bias=self.forget_bias,
            kernel_initializer=initializers.next(),
            recurrent_initializer=initializers.next(),
            dtype=self.dtype_policy,
        )

    def _create_networks(self) -> None:
        scale = self.initializer_scale
        initializer = (
            keras.initializers.RandomUniform(-scale, scale)
            if self.initializer == "uniform"
            else self.initializer
        )
        initializers = SeededInitializers(initializer, self.seed)
        policy = self.dtype_policy
        input_width = self.embedding_width or self.width
        self.embedding = TokenEmbedding(
            self.vocabulary_size,
            input_width,
            initializer=initializers.next(),
            dtype=policy,
            name="embedding",
        )
        self.embedding.build((None, None))
        self.recurrent_layers = []
        for index in range(self.num_layers):
            layer = Recurrent(
                self.make_cell(initializers),
                time_major=True,
                jit_loop=self.jit_loop,
                dtype=policy,
                name=f"recurrent_{index}",
            )
            layer.build((None, None, input_width))
            input_width = layer.cell.output_size
            self.recurrent_layers.append(layer)
            # tf.train.Checkpoint does not look into lists of a Keras model.
            setattr(self, layer.name, layer)
        self.projection = None
        if self.projection_width is not None:
            self.projection = keras.layers.Dense(
                self.projection_width,
                use_bias=False,
                kernel_initializer=initializers.next(),
                dtype=policy,
                name="projection",
            )
            self.projection.build((None, None, input_width))
            input_width = self.projection_width
        self.output_layer = SoftmaxOutput(
            self.vocabulary_size,
            use_bias=self.use_output_bias,
            own_kernel=not self.tied,
            kernel_initializer=initializers.next(),
            bias_initializer=initializers.next(),
            dtype=policy,
            name="output",
        )
        self.output_layer.build((None, None, input_width))
        rates = [
            self.dropout if self.input_dropout is None else self.input_dropout,
            *[self.dropout] * (self.num_layers - 1),
            self.dropout if self.output_dropout is None else self.output_dropout,
        ]
        seeds = initializers.seeds(len(rates))
        self.dropout_layers = [
            ReplicaDropout(
                rate, seed=seed, batch_axis=1, dtype=policy, name=f"dropout_{index}"
            )
            for index, (rate, seed) in enumerate(zip(rates, seeds, strict=True))
        ]
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: all sizes are arguments, so `__init__` creates the weights."""

    # === Computation ===

    def run_window(
        self,
        tokens: tf.Tensor,
        states: LayerStates,
        training: bool,
        collected: list[tf.Tensor] | None = None,
    ) -> tuple[tf.Tensor, LayerStates]:
        x = self.embedding(tf.transpose(tokens))
        new_states = []
        for layer, dropout, layer_states in zip(
            self.recurrent_layers, self.dropout_layers, states, strict=False
        ):
            x = dropout(x, training=training)
            x, layer_states = layer(x, layer_states, training=training)
            new_states.append(layer_states)
            if collected is not None:
                collected.append(x)
        x = self.dropout_layers[-1](x, training=training)
        features = tf.transpose(x, [1, 0, 2])
        if self.projection is not None:
            features = self.projection(features)
        return features, new_states

    def tied_kernel(self) -> tf.Tensor | None:
        return self.embedding.matrix() if self.tied else None

    @property
    def feature_width(self) -> int:
        return self.projection_width or self.width

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        initializer = self.initializer
        if initializer != "uniform":
            initializer = keras.initializers.serialize(initializer)
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "width": self.width,
            "num_layers": self.num_layers,
            "embedding_width": self.embedding_width,
            "projection_width": self.projection_width,
            "tied": self.tied,
            "dropout": self.dropout,
            "input_dropout": self.input_dropout,
            "output_dropout": self.output_dropout,
            "initializer": initializer,
            "initializer_scale": self.initializer_scale,
            "forget_bias": self.forget_bias,
            "use_output_bias": self.use_output_bias,
            "jit_loop": self.jit_loop,
            "seed": self.seed,
        }
