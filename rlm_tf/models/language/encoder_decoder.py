"""A recurrent encoder and a recurrent decoder that starts from its last state."""

from __future__ import annotations

import functools
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_ids, check_integer, check_shapes, known_ids
from rlm_tf.layers.basic.token_embedding import TokenEmbedding
from rlm_tf.layers.output.softmax_output import SoftmaxOutput
from rlm_tf.layers.recurrent.cell_copies import copy_cell
from rlm_tf.layers.recurrent.hidden_state_cell import HiddenStateCell
from rlm_tf.layers.recurrent.recurrent import Recurrent
from rlm_tf.metrics.perplexity import Perplexity
from rlm_tf.objective_model.objective_model import ObjectiveModel
from rlm_tf.objective_model.term import TermLoss, TermSpec
from rlm_tf.seeds import Seeds


@keras.saving.register_keras_serializable("rlm_tf")
class EncoderDecoder(ObjectiveModel):
    """Sequence to sequence with one layer each (Sutskever et al. 2014).

    Encoder and decoder have embeddings and cells of their own; the decoder starts from
    the encoder's final state, and where the width E of embeddings differs from that of
    the cell, a linear map to E comes before the softmax. Without attention and dropout:
    the model of the reverse copy task in Melis et al. (2020, section 4.3).

    It is called on `(source, decoder_inputs)`, int `[B, S]` and `[B, T]`, and gives
    logits `[B, T, V]`. `fit()` takes batches `((source, decoder_inputs), targets)`,
    perhaps with weights `[B, T]`.

    Args:
        vocabulary_size: V.
        cell: A cell as both are to be; each gets a copy with seeds of its own.
        embedding_width: E; None: the width of the cell.
        jit_loop: See `Recurrent`.
        seed: Of initialisation.
        **kwargs: Of `ObjectiveModel` (`clip_norm`, `loss_scale`, `l2`), `keras.Model`.

    Raises:
        ValueError: If a size is not positive or the cell no `HiddenStateCell`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        cell: HiddenStateCell,
        *,
        embedding_width: int | None = None,
        jit_loop: bool | str = "auto",
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_integer("EncoderDecoder", "vocabulary_size", vocabulary_size, 1)
        if embedding_width is not None:
            check_integer("EncoderDecoder", "embedding_width", embedding_width, 1)
        if not isinstance(cell, HiddenStateCell):
            raise ValueError(
                "EncoderDecoder: `cell` must be an rlm_tf.layers.HiddenStateCell, "
                f"found {type(cell).__name__}."
            )
        self.vocabulary_size = vocabulary_size
        # Not an attribute of its own: Keras would count it among the layers.
        self._prototype = lambda: cell
        self.embedding_width = embedding_width
        self.jit_loop = jit_loop
        self.seed = seed
        self._create_networks(Seeds(seed))

    @property
    def cell(self) -> HiddenStateCell:
        """The cell that was given; encoder and decoder have copies of it."""
        return self._prototype()

    # === Networks ===

    def _create_networks(self, seeds: Seeds) -> None:
        policy, units = self.dtype_policy, self.cell.output_size
        width = self.embedding_width or units

        def normal(mode: str) -> keras.initializers.Initializer:
            return keras.initializers.VarianceScaling(
                1.0, mode, "truncated_normal", seeds.next()
            )

        def embedding(name: str) -> TokenEmbedding:
            layer = TokenEmbedding(
                self.vocabulary_size,
                width,
                initializer=normal("fan_out"),
                dtype=policy,
                name=name,
            )
            layer.build((None, None))
            return layer

        def recurrent(name: str) -> Recurrent:
            layer = Recurrent(
                copy_cell(self.cell, seeds, policy),
                time_major=True,
                jit_loop=self.jit_loop,
                dtype=policy,
                name=name,
            )
            layer.build((None, None, width))
            return layer

        self.source_embedding = embedding("source_embedding")
        self.target_embedding = embedding("target_embedding")
        self.encoder = recurrent("encoder")
        self.decoder = recurrent("decoder")
        self.projection: keras.layers.Layer | None = None
        if width != units:
            self.projection = keras.layers.Dense(
                width,
                use_bias=False,
                kernel_initializer=keras.initializers.Orthogonal(seed=seeds.next()),
                dtype=policy,
                name="projection",
            )
            self.projection.build((None, None, units))
        self.output_layer = SoftmaxOutput(
            self.vocabulary_size,
            kernel_initializer=normal("fan_out"),
            dtype=policy,
            name="output",
        )
        self.output_layer.build((None, None, width))
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: all sizes are arguments, so `__init__` creates the weights."""

    # === Computation ===

    def encode(self, source: tf.Tensor, training: bool = False) -> list[tf.Tensor]:
        """Returns the final states of the encoder after reading int `[B, S]`."""
        embedded = self.source_embedding(tf.transpose(source))
        _, states = self.encoder(embedded, training=training)
        return states

    def decode(
        self, tokens: tf.Tensor, states: list[tf.Tensor], training: bool = False
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Maps int `[B, T]` and states to features `[B, T, F]` and new states."""
        embedded = self.target_embedding(tf.transpose(tokens))
        outputs, states = self.decoder(embedded, states, training=training)
        if self.projection is not None:
            outputs = self.projection(outputs)
        return tf.transpose(outputs, [1, 0, 2]), states

    def features(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns the features before the softmax; `inputs` as the model's."""
        source, tokens = inputs
        check_ids("EncoderDecoder", source=source, decoder_inputs=tokens)
        check_shapes(
            "EncoderDecoder", source=(source, "B S"), decoder_inputs=(tokens, "B T")
        )
        return self.decode(tokens, self.encode(source, training), training)[0]

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        return self.output_layer(self.features(inputs, bool(training)))

    def greedy(self, source: tf.Tensor, start: int, num_tokens: int) -> tf.Tensor:
        """Returns what the model says after a source, each token the most probable.

        Args:
            source: int `[B, S]`.
            start: The decoder's first input.
            num_tokens: T >= 1.

        Returns:
            int32 `[B, T]`.
        """
        check_integer("EncoderDecoder.greedy", "num_tokens", num_tokens, 1)
        states = self.encode(source)
        token = tf.fill([tf.shape(source)[0]], start)
        said = tf.TensorArray(tf.int32, num_tokens, element_shape=[None])

        def step(t: tf.Tensor, token: tf.Tensor, states: Any, said: Any) -> Any:
            features, states = self.decode(token[:, tf.newaxis], states)
            logits = self.output_layer(features)[:, 0]
            token = tf.argmax(logits, axis=-1, output_type=tf.int32)
            return t + 1, token, states, said.write(t, token)

        *_, said = tf.while_loop(
            lambda t, *_: t < num_tokens, step, (0, token, states, said)
        )
        return tf.transpose(said.stack())

    # === Objective ===

    @property
    def term_specs(self) -> list[TermSpec]:
        return [TermSpec("nll")]

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> dict[str, TermLoss]:
        known = functools.partial(known_ids, "EncoderDecoder", self.vocabulary_size)
        x = known("source", x[0]), known("decoder_inputs", x[1])
        nll = self.output_layer(self.features(x, training), targets=known("targets", y))
        return {"nll": TermLoss(nll, sample_weight)}

    def make_term_metrics(self, name: str) -> list[keras.metrics.Metric]:
        return [keras.metrics.Mean(name=name), Perplexity()]

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "cell": keras.saving.serialize_keras_object(self.cell),
            "embedding_width": self.embedding_width,
            "jit_loop": self.jit_loop,
            "seed": self.seed,
        }
