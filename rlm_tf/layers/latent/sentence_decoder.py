"""A recurrent decoder of sentences that sees the latents at every step."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_shapes, checked_ids, known_ids
from rlm_tf.layers.basic.replica_dropout import replica_dropout
from rlm_tf.layers.latent.flat_latents import check_examples, flat_latents
from rlm_tf.layers.latent.sentence_encoder import recurrent, token_embedding
from rlm_tf.layers.output.softmax_output import SoftmaxOutput
from rlm_tf.layers.recurrent.hidden_state_cell import HiddenStateCell
from rlm_tf.layers.recurrent.lstm_cell import LSTMCell
from rlm_tf.nested_config import NestedConfig
from rlm_tf.padding import FILL_UP, PADDING
from rlm_tf.seeds import Seeds


@keras.saving.register_keras_serializable("rlm_tf")
class SentenceDecoder(NestedConfig, keras.layers.Layer):
    """Log-probability of sentences given latents, by a recurrent language model.

    The decoder of Melis (2023, section 5.7.2): a recurrent layer whose input is the
    embedding of the previous token plus a linear map of the latents, and a softmax. The
    first input is the end of a sentence, which is its last token, too, unless the
    sentence was cut off.

    Dropout acts on embedded inputs, on the recurrent state (the cell's) and on outputs.
    All samples of a sentence get the same masks unless `shared_dropout` is false: that
    is what makes latents and dropout go together (Figures 5.10 and 5.12).

    Args:
        vocabulary_size: V.
        latent_size: Entries of one example's latents.
        cell: The cell, with its state dropout; None: `LSTMCell(128)`.
        embedding_width: E; None: the width of the cell. If it differs, a linear map to
            E comes before the softmax.
        end_id: Id of the end of a sentence.
        tied: Whether the softmax uses the embedding matrix.
        input_dropout: Rate on inputs, in [0, 1).
        output_dropout: Rate on outputs, in [0, 1).
        shared_dropout: Whether the samples of a sentence share masks.
        seed: Of initialisation and dropout.
        **kwargs: Of `keras.layers.Layer`.

    Call arguments:
        latents: `[K, B, ...]`.
        tokens: int `[B, T]`, -1 after the end of a sentence.

    Returns:
        `ln p(x|z)` `[K, B]`, nats a sentence, single precision or wider.

    Raises:
        ValueError: If latents have not `latent_size` entries, or tokens are not ids
            `[B, T]` of as many examples.
    """

    def __init__(
        self,
        vocabulary_size: int,
        latent_size: int,
        cell: HiddenStateCell | None = None,
        *,
        embedding_width: int | None = None,
        end_id: int = 0,
        tied: bool = False,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
        shared_dropout: bool = True,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_integer("SentenceDecoder", "vocabulary_size", vocabulary_size, 2)
        check_integer("SentenceDecoder", "latent_size", latent_size, 1)
        for name, rate in (
            ("input_dropout", input_dropout),
            ("output_dropout", output_dropout),
        ):
            if not 0 <= rate < 1:
                raise ValueError(
                    f"SentenceDecoder: `{name}` must lie in [0, 1), found {rate}."
                )
        if not 0 <= end_id < vocabulary_size:
            raise ValueError(
                f"SentenceDecoder: `end_id` must lie in [0, {vocabulary_size}), found "
                f"{end_id}."
            )
        cell = LSTMCell(128) if cell is None else cell
        self.vocabulary_size = vocabulary_size
        self.latent_size = latent_size
        # Not an attribute of its own: Keras would count it among the layers.
        self._prototype = lambda: cell
        self.embedding_width = embedding_width
        self.end_id = end_id
        self.tied = tied
        self.input_dropout = input_dropout
        self.output_dropout = output_dropout
        self.shared_dropout = shared_dropout
        self.seed = seed
        self._create_networks(Seeds(seed, self))
        self.built = True

    @property
    def cell(self) -> HiddenStateCell:
        """The cell that was given; the decoder has a copy of it."""
        return self._prototype()

    def _create_networks(self, seeds: Seeds) -> None:
        units = self.cell.output_size
        width = self.embedding_width or units

        def dense(inputs: int, outputs: int) -> keras.layers.Dense:
            layer = keras.layers.Dense(
                outputs,
                use_bias=False,
                kernel_initializer=keras.initializers.GlorotUniform(seeds.next()),
                dtype=self.dtype_policy,
            )
            layer.build((None, inputs))
            return layer

        self.embedding = token_embedding(self, self.vocabulary_size, width, seeds)
        self.latent_map = dense(self.latent_size, width)
        self.recurrent = recurrent(self, self.cell, width, seeds)
        self.projection = dense(units, width) if width != units else None
        self.output_layer = SoftmaxOutput(
            self.vocabulary_size,
            own_kernel=not self.tied,
            kernel_initializer=keras.initializers.VarianceScaling(
                1.0, "fan_out", "truncated_normal", seeds.next()
            ),
            dtype=self.dtype_policy,
        )
        self.output_layer.build((None, None, width))
        self.seed_generator = seeds.generator()

    # === Computation ===

    def call(
        self, latents: tf.Tensor, tokens: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        tokens = checked_ids("SentenceDecoder", "tokens", tokens)
        check_shapes("SentenceDecoder", tokens=(tokens, "B T"))
        check_examples("SentenceDecoder", latents, tokens=tokens)
        samples = latents.shape[0] or tf.shape(latents)[0]
        known = tokens != PADDING
        tokens = known_ids(
            "SentenceDecoder", self.vocabulary_size, "tokens", tokens, known, FILL_UP
        )
        words = tf.maximum(tokens, 0)
        begin = tf.fill([tf.shape(words)[0], 1], tf.cast(self.end_id, words.dtype))
        inputs = tf.concat([begin, words[:, :-1]], axis=1)
        features, _ = self.features(
            tf.repeat(inputs, samples, axis=0),
            self.latent_inputs(latents),
            copies=samples,
            training=training,
        )
        targets = tf.repeat(tf.transpose(words), samples, axis=1)
        losses = self.output_layer(features, targets, self._tied_kernel())
        losses = tf.reshape(losses, [tf.shape(words)[1], -1, samples])
        counted = tf.where(tf.transpose(known)[:, :, tf.newaxis], losses, 0)
        return -tf.transpose(tf.reduce_sum(counted, axis=0))

    def latent_inputs(self, latents: tf.Tensor) -> tf.Tensor:
        """Maps latents `[K, B, ...]` to inputs `[B K, E]`, samples of one together."""
        flat = flat_latents("SentenceDecoder", latents, self.latent_size)
        mapped = self.latent_map(tf.cast(flat, self.compute_dtype))
        return tf.reshape(tf.transpose(mapped, [1, 0, 2]), [-1, mapped.shape[-1]])

    def features(
        self,
        inputs: tf.Tensor,
        latent_inputs: tf.Tensor,
        states: list[tf.Tensor] | None = None,
        *,
        copies: int = 1,
        training: bool = False,
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Runs the decoder over tokens.

        Args:
            inputs: int `[N, T]`, what is read at each step.
            latent_inputs: `[N, E]`, from `latent_inputs`.
            states: Of the cell, `[N, S]` each; None: zeros.
            copies: Samples of one sentence, which share masks of dropout.
            training: Whether dropout acts.

        Returns:
            What the softmax sees, `[T, N, E]`, and the final states.
        """
        copies = copies if self.shared_dropout else 1
        embedded = self.embedding(tf.transpose(inputs))
        if training:
            embedded = self._dropped(embedded, self.input_dropout, copies)
        outputs, states = self.recurrent(
            embedded + latent_inputs, states, training=training, copies=copies
        )
        if training:
            outputs = self._dropped(outputs, self.output_dropout, copies)
        if self.projection is not None:
            outputs = self.projection(outputs)
        return outputs, states

    def logits(self, features: tf.Tensor) -> tf.Tensor:
        """Maps features `[..., E]` to logits `[..., V]`."""
        return self.output_layer(features, tied_kernel=self._tied_kernel())

    def _tied_kernel(self) -> tf.Tensor | None:
        return self.embedding.matrix() if self.tied else None

    def _dropped(self, values: tf.Tensor, rate: float, copies: int) -> tf.Tensor:
        """Returns `[T, N, D]` with dropout; every `copies` rows share a mask."""
        if rate == 0:
            return values
        mask = replica_dropout(
            tf.ones_like(values[:, ::copies]), rate, self.seed_generator, batch_axis=1
        )
        return values * tf.repeat(mask, copies, axis=1)

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        names = (
            "vocabulary_size",
            "latent_size",
            "embedding_width",
            "end_id",
            "tied",
            "input_dropout",
            "output_dropout",
            "shared_dropout",
            "seed",
        )
        return {
            **super().get_config(),
            **{name: getattr(self, name) for name in names},
            "cell": keras.saving.serialize_keras_object(self.cell),
        }
