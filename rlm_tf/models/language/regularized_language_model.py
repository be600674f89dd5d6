"""The recurrent language model of Melis, with its connections and its dropouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.layers.basic.replica_dropout import ReplicaDropout, replica_dropout
from rlm_tf.layers.basic.token_embedding import TokenEmbedding
from rlm_tf.layers.output.mixture_softmax_output import (
    MixtureFeatures,
    MixtureSoftmaxOutput,
)
from rlm_tf.layers.output.softmax_output import SoftmaxOutput
from rlm_tf.layers.recurrent.cell_copies import copy_cell
from rlm_tf.layers.recurrent.connections import run_layers
from rlm_tf.layers.recurrent.hidden_state_cell import HiddenStateCell
from rlm_tf.layers.recurrent.recurrent import Recurrent
from rlm_tf.models.language.activation_penalties import (
    Activations,
    penalty_specs,
    penalty_terms,
)
from rlm_tf.models.language.dropout_samples import LayerStates
from rlm_tf.models.language.regularized_arguments import check_arguments
from rlm_tf.models.language.stateful_language_model import StatefulLanguageModel
from rlm_tf.objective_model.term import TermLoss, TermSpec
from rlm_tf.seeds import Seeds


@keras.saving.register_keras_serializable("rlm_tf")
class RegularizedLanguageModel(StatefulLanguageModel):
    """Embedding, recurrent layers of any cell, softmax; maximum likelihood.

    The model of Melis, "Towards Better Generative Models of Language" (2023), sections
    2.2 and 4.2, and of Melis et al. (2018, 2020): embedding, layers of one width whose
    outputs meet in one of three ways (`rlm_tf.layers.recurrent.connections`; "skip" is
    that of chapter 2, "residual" of chapter 4), an optional linear map, a tied softmax.

    Dropout masks differ at every time step, or, with `locked_dropout`, only from window
    to window (Gal and Ghahramani 2016). State dropout, one mask a window, and weight
    drop are the cell's. Embeddings start with variance 1 / E, an untied output kernel
    with that of its inputs, the map orthogonal, biases of the softmax at 0, as in the
    authors' code.

    How it is called and what it remembers: `StatefulLanguageModel`.

    Args:
        vocabulary_size: V.
        cell: A cell as it is to be in all layers, `MogrifierLSTMCell(650, rank=64)` for
            example, or a list of one for each layer, which may differ in width where
            connections are "stacked". Every layer gets a copy with seeds of its own.
        num_layers: Number L of recurrent layers.
        embedding_width: E; None: the width H of the last cell. If it differs from H, a
            linear map (no bias) from H to E comes before the softmax.
        connections: "stacked", "skip" or "residual".
        tied: Whether the softmax uses the embedding matrix.
        mixture_components: Number of softmaxes that are mixed; 1: no mixture.
        input_dropout: Rate on embedded inputs.
        layer_dropout: Rate of inter-layer dropout with "stacked" and "skip", of cell
            output dropout with "residual".
        output_dropout: Rate on what the layers give together.
        projection_dropout: Rate after the map before the softmax, or on each component
            of a mixture; None: `output_dropout`.
        reset_rate: Probability with which a row's carried states are zeroed before a
            training window.
        word_dropout: Rate of words whose whole embedding is zeroed in a window, at all
            places (Gal and Ghahramani 2016); a tied softmax has them all.
        locked_dropout: Whether masks of dropout are the same at all time steps of a
            window.
        activation_penalty: Coefficient of the mean square of what the layers give after
            dropout (AR, Merity et al. 2017, arXiv 1708.01009).
        temporal_penalty: Coefficient of the mean square of its change from one time
            step to the next, before dropout (TAR).
        recompute_logits: Whether a mixture's losses keep the logits of one softmax in
            memory instead of those of all, and compute them again for the gradient:
            memory for time.
        jit_loop: Whether XLA compiles the recurrent loop; see `Recurrent`.
        seed: Of initialisation and dropout.
        **kwargs: Of `StatefulLanguageModel` (`clip_norm`, `loss_scale`, `l2`,
            `bits_per_character`, `dropout_samples`) and of `keras.Model`.

    Raises:
        ValueError: If a size is not positive, a rate not in [0, 1), a penalty negative,
            the cell no `HiddenStateCell`, the connections unknown, or widths differ and
            connections are not "stacked".
    """

    def __init__(
        self,
        vocabulary_size: int,
        cell: HiddenStateCell | Sequence[HiddenStateCell],
        num_layers: int = 2,
        *,
        embedding_width: int | None = None,
        connections: str = "skip",
        tied: bool = True,
        mixture_components: int = 1,
        input_dropout: float = 0.0,
        layer_dropout: float = 0.0,
        output_dropout: float = 0.0,
        projection_dropout: float | None = None,
        reset_rate: float = 0.0,
        word_dropout: float = 0.0,
        locked_dropout: bool = False,
        activation_penalty: float = 0.0,
        temporal_penalty: float = 0.0,
        recompute_logits: bool = False,
        jit_loop: bool | str = "auto",
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        # Not an attribute of its own: Keras would count it among the layers.
        self._has_one_cell = not isinstance(cell, Sequence)
        cells = list(cell) if isinstance(cell, Sequence) else [cell] * num_layers
        self._prototypes = lambda: cells
        self.num_layers = num_layers
        self.embedding_width = embedding_width
        self.connections = connections
        self.tied = tied
        self.mixture_components = mixture_components
        self.input_dropout = input_dropout
        self.layer_dropout = layer_dropout
        self.output_dropout = output_dropout
        self.projection_dropout = projection_dropout
        self.reset_rate = reset_rate
        self.word_dropout = word_dropout
        self.locked_dropout = locked_dropout
        self.activation_penalty = activation_penalty
        self.temporal_penalty = temporal_penalty
        self.recompute_logits = recompute_logits
        self.jit_loop = jit_loop
        self.seed = seed
        check_arguments(self)
        self._create_networks(Seeds(seed))
        self.create_memory([layer.cell.state_size for layer in self.recurrent_layers])

    @property
    def cells(self) -> list[HiddenStateCell]:
        """The cells that were given, one for each layer, which have copies of them."""
        return self._prototypes()

    @property
    def cell(self) -> HiddenStateCell:
        """The cell that was given; the last, if there are several."""
        return self.cells[-1]

    # === Networks ===

    def _create_networks(self, seeds: Seeds) -> None:
        policy, units = self.dtype_policy, self.cell.output_size
        width = self.embedding_width or units

        def dropout(rate: float, name: str) -> ReplicaDropout:
            return ReplicaDropout(
                rate,
                self._noise_shape,
                seeds.next(),
                batch_axis=1,
                dtype=policy,
                name=name,
            )

        def initializer(weight: str, fan_in: int) -> keras.initializers.Initializer:
            return self.make_initializer(weight, fan_in, seeds.next())

        # The matrix is [V, E]: its rows are what one token or one logit gets.
        self.embedding = TokenEmbedding(
            self.vocabulary_size,
            width,
            initializer=initializer("embedding", self.vocabulary_size),
            dtype=policy,
            name="embedding",
        )
        self.embedding.build((None, None))
        self.embedding_dropout = dropout(self.input_dropout, "embedding_dropout")
        self.recurrent_layers = []
        self.layer_dropouts = []
        inputs = width
        for index, cell in enumerate(self.cells):
            layer = Recurrent(
                copy_cell(cell, seeds, policy),
                time_major=True,
                jit_loop=self.jit_loop,
                dtype=policy,
                name=f"recurrent_{index}",
            )
            layer.build((None, None, inputs))
            inputs = cell.output_size
            self.recurrent_layers.append(layer)
            # tf.train.Checkpoint does not look into lists of a Keras model.
            setattr(self, layer.name, layer)
            name = f"layer_dropout_{index}"
            self.layer_dropouts.append(dropout(self.layer_dropout, name))
        self.final_dropout = dropout(self.output_dropout, "final_dropout")
        if self.reset_rate > 0:
            self.reset_seeds = seeds.generator()
        self._create_output(width, initializer, dropout)
        if self.word_dropout > 0:
            self.word_seeds = seeds.generator()
        self.built = True

    @property
    def _noise_shape(self) -> tuple[int | None, ...] | None:
        """Of dropout, time first."""
        return (1, None, None) if self.locked_dropout else None

    def make_initializer(
        self, weight: str, fan_in: int, seed: int
    ) -> keras.initializers.Initializer:
        """Returns the initialiser of a matrix outside of the recurrent layers.

        Args:
            weight: "embedding", "output", "mixture" (both of its kernels) or
                "projection".
            fan_in: Width of what it multiplies; V for the embedding.
            seed: Of the initialiser.
        """
        if weight == "projection":
            return keras.initializers.Orthogonal(seed=seed)
        mode = "fan_in" if weight == "mixture" else "fan_out"
        return keras.initializers.VarianceScaling(1.0, mode, "truncated_normal", seed)

    def _create_output(self, width: int, initializer: Any, dropout: Any) -> None:
        """Creates what comes after the recurrent layers; `width` is E."""
        policy, units = self.dtype_policy, self.cell.output_size
        options = {
            "own_kernel": not self.tied,
            "kernel_initializer": initializer("output", width),
            "dtype": policy,
            "name": "output",
        }
        rate = self.projection_dropout
        rate = self.output_dropout if rate is None else rate
        self.projection: keras.layers.Layer | None = None
        self.after_projection: ReplicaDropout | None = None
        features = width
        if self.mixture_components > 1:
            last = dropout(rate, "mixture_dropout")
            self.projection = MixtureFeatures(
                self.mixture_components,
                width,
                kernel_initializer=initializer("mixture", units),
                rate=rate,
                seed=last.seed,
                batch_axis=1,
                noise_shape=self._noise_shape,
                dtype=policy,
                name="projection",
            )
            features = self.mixture_components * (width + 1)
            self.output_layer = MixtureSoftmaxOutput(
                self.vocabulary_size,
                self.mixture_components,
                recompute_logits=self.recompute_logits,
                **options,
            )
        else:
            if width != units:
                self.projection = keras.layers.Dense(
                    width,
                    use_bias=False,
                    kernel_initializer=initializer("projection", units),
                    dtype=policy,
                    name="projection",
                )
                self.after_projection = dropout(rate, "after_projection")
            self.output_layer = SoftmaxOutput(self.vocabulary_size, **options)
        if self.projection is not None:
            self.projection.build((None, None, units))
        self.output_layer.build((None, None, features))
        self._feature_width = features

    # === Computation ===

    def run_window(
        self,
        tokens: tf.Tensor,
        states: LayerStates,
        training: bool,
        collected: list[tf.Tensor] | None = None,
    ) -> tuple[tf.Tensor, LayerStates]:
        tokens = tf.transpose(tokens)
        inputs = self.embedding(tokens)
        if training and self.word_dropout > 0:
            words = tf.ones([self.vocabulary_size, 1], inputs.dtype)
            # One mask for the rows of all replicas.
            kept = replica_dropout(
                words,
                self.word_dropout,
                self.word_seeds,
                batch_axis=1,
                noise_shape=(None, 1),
            )
            inputs *= tf.gather(kept, tokens)
        inputs = self.embedding_dropout(inputs, training=training)
        total, new_states = run_layers(
            self.recurrent_layers,
            self.layer_dropouts,
            self.connections,
            inputs,
            states,
            training,
            collected,
        )
        features = self.final_dropout(total, training=training)
        if isinstance(collected, Activations):
            collected.dropped = features
        if isinstance(self.projection, MixtureFeatures):
            features = self.projection(features, training=training)
        elif self.projection is not None:
            features = self.projection(features)
        if self.after_projection is not None:
            features = self.after_projection(features, training=training)
        return tf.transpose(features, [1, 0, 2]), new_states

    def training_starts(self, start: tf.Tensor) -> tf.Tensor:
        if self.reset_rate == 0:
            return start
        kept = replica_dropout(
            tf.ones_like(start, tf.float32), self.reset_rate, self.reset_seeds
        )
        return tf.maximum(start, tf.cast(tf.equal(kept, 0), start.dtype))

    def tied_kernel(self) -> tf.Tensor | None:
        return self.embedding.matrix() if self.tied else None

    @property
    def feature_width(self) -> int:
        return self._feature_width

    # === Objective ===

    @property
    def term_specs(self) -> list[TermSpec]:
        return [*super().term_specs, *self._penalties()]

    def objective_terms(
        self,
        x: Any,
        y: Any,
        sample_weight: Any,
        training: bool,
        collected: list[tf.Tensor] | None = None,
    ) -> dict[str, TermLoss]:
        if not (training and self._penalties()):
            return super().objective_terms(x, y, sample_weight, training, collected)
        seen = Activations()
        terms = super().objective_terms(x, y, sample_weight, training, seen)
        return terms | self.further_terms(seen, sample_weight)

    def further_terms(
        self, collected: list[tf.Tensor], sample_weight: tf.Tensor | None
    ) -> dict[str, TermLoss]:
        wanted = {spec.name for spec in self._penalties()}
        if not wanted:
            return {}
        assert isinstance(collected, Activations)
        found = penalty_terms(collected, sample_weight)
        return {name: found[name] for name in found if name in wanted}

    def _penalties(self) -> list[TermSpec]:
        return penalty_specs(self.activation_penalty, self.temporal_penalty)

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        cells = [serialize(cell) for cell in self.cells]
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "cell": cells[0] if self._has_one_cell else cells,
            "num_layers": self.num_layers,
            "embedding_width": self.embedding_width,
            "connections": self.connections,
            "tied": self.tied,
            "mixture_components": self.mixture_components,
            "input_dropout": self.input_dropout,
            "layer_dropout": self.layer_dropout,
            "output_dropout": self.output_dropout,
            "projection_dropout": self.projection_dropout,
            "reset_rate": self.reset_rate,
            "word_dropout": self.word_dropout,
            "locked_dropout": self.locked_dropout,
            "activation_penalty": self.activation_penalty,
            "temporal_penalty": self.temporal_penalty,
            "recompute_logits": self.recompute_logits,
            "jit_loop": self.jit_loop,
            "seed": self.seed,
        }
