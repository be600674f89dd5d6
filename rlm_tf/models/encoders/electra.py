"""ELECTRA: a detector of the tokens that a generator has replaced."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from rlm_tf import gradients as gradient_lists
from rlm_tf.checks import check_option, check_range
from rlm_tf.layers.basic.replica_noise import replica_noise, sizes_of
from rlm_tf.layers.output.detection_head import DetectionHead
from rlm_tf.layers.transformer.disentangled_embedding import DisentangledEmbedding
from rlm_tf.layers.transformer.encoder_embedding import EncoderEmbedding
from rlm_tf.layers.transformer.transformer_encoder import TransformerEncoder
from rlm_tf.metrics.declared import declared
from rlm_tf.metrics.detection import DetectionF1
from rlm_tf.models.encoders.masked_batch import MaskedBatch, check_jit, masked_batch
from rlm_tf.models.encoders.masked_language_model import MaskedLanguageModel
from rlm_tf.objective_model.objective_model import ObjectiveModel
from rlm_tf.objective_model.term import (
    Coefficient,
    TermLoss,
    TermSpec,
    check_coefficient,
)
from rlm_tf.objectives.replaced_tokens import (
    corrupted_tokens,
    detection_labels,
    detector_loss,
    generator_loss,
)
from rlm_tf.optimizers.decoupled_optimizer import decoupled_part_of
from rlm_tf.optimizers.part_owners import SHARED, part_owners
from rlm_tf.seeds import Seeds
from rlm_tf.typing import Gradient

Embeddings = Literal["shared", "separate", "disentangled"]
EMBEDDINGS: tuple[Embeddings, ...] = ("shared", "separate", "disentangled")


class Corrupted(NamedTuple):
    """What a generator makes of a batch.

    Attributes:
        tokens: int `[B, T]`, masked ones drawn by the generator.
        loss: Of the generator.
        correct: `[N]`, 1 where its most probable token is the right one.
    """

    tokens: tf.Tensor
    loss: TermLoss
    correct: tf.Tensor


@keras.saving.register_keras_serializable("rlm_tf")
class Electra(ObjectiveModel):
    """Trains an encoder to find replaced tokens (Clark et al. 2020, arXiv 2003.10555).

    A generator, a masked language model, predicts masked tokens; what it draws in their
    place a detector has to tell from the others:

        loss = L_G + discriminator_weight * L_D

    with the mean over masked tokens and that over all that are no padding. No gradient
    goes from the detector to the generator, so that the weight only matters where both
    share parameters or are clipped together. The original has shared embeddings and one
    optimiser; Dong (2025, 1.4) has separate ones, a large generator and, by a
    `DecoupledOptimizer` of the parts "generator" and "discriminator", a rate and a clip
    norm for each.

    `fit()` takes the batches of `MaskedLanguageModel`.

    Logs: `generator` and `discriminator` (both losses), `generator_accuracy`, `f1` of
    replaced tokens, and `replaced`, their share of all; while training, too,
    `generator_gradient_norm`, `discriminator_gradient_norm` and, with shared
    embeddings, `shared_gradient_norm`: of the total's gradient before it is clipped,
    means over steps. For rates that Adam has in effect there is
    `rlm_tf.training.AdamLog`.

    Args:
        generator: The smaller encoder, as a rule. With shared embeddings one like it is
            used, with its other weights.
        discriminator: The encoder that is wanted.
        discriminator_weight: lambda, a number or a schedule.
        embeddings: "shared": both have those of the discriminator; "separate"; or
            "disentangled": the discriminator's are the generator's, without a gradient
            to them, plus own ones (He et al. 2021, arXiv 2111.09543).
        temperature: Of the draws.
        max_positions: See `MaskedLanguageModel`.
        clip_norm: See `ObjectiveModel`: of all gradients together, as the original.
        seed: Of heads and draws.
        **kwargs: Of `ObjectiveModel` and `keras.Model`.

    Attributes:
        generator: A `MaskedLanguageModel`.
        discriminator: A `TransformerEncoder`.

    Raises:
        ValueError: If an argument is out of range, or encoders do not fit.
    """

    def __init__(
        self,
        generator: TransformerEncoder,
        discriminator: TransformerEncoder,
        *,
        discriminator_weight: Coefficient = 50.0,
        embeddings: Embeddings = "shared",
        temperature: float = 1.0,
        max_positions: int | None = None,
        clip_norm: float | None = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        name = type(self).__name__
        _check_encoders(name, generator, discriminator)
        super().__init__(
            clip_norm=clip_norm, **{"dtype": discriminator.dtype_policy, **kwargs}
        )
        check_coefficient(name, "discriminator_weight", discriminator_weight)
        check_option(name, "embeddings", embeddings, EMBEDDINGS)
        least = float(np.finfo(np.float32).tiny)
        check_range(name, least, math.inf, temperature=temperature)
        self.discriminator_weight = discriminator_weight
        self.embeddings = embeddings
        self.temperature = temperature
        self.max_positions = max_positions
        self.seed = seed
        seeds = Seeds(seed, self)
        if embeddings == "shared":
            generator = generator.with_embedding(discriminator.embedding)
        elif embeddings == "disentangled":
            discriminator = _disentangled(discriminator, generator.embedding)
        self.generator = MaskedLanguageModel(
            generator,
            max_positions=max_positions,
            seed=seeds.next(),
            name="generator",
        )
        self.discriminator = discriminator
        self.detection_head = DetectionHead(
            discriminator.width,
            activation=discriminator.activation,
            initializer_range=discriminator.initializer_range,
            seed=seeds.next(),
            dtype=self.dtype_policy,
            name="detection_head",
        )
        self.detection_head.build((None, None, discriminator.width))
        self.draw_seeds = seeds.generator()
        self.generator_metric = declared(
            keras.metrics.Mean(name="generator_accuracy"), "up"
        )
        self.f1_metric = DetectionF1(name="f1")
        self.replaced_metric = declared(keras.metrics.Mean(name="replaced"), "down")
        parts = [*self.parts, *([SHARED] if embeddings == "shared" else [])]
        self.norm_metrics = {
            part: declared(
                keras.metrics.Mean(name=f"{part}_gradient_norm"),
                "down",
                only_training=True,
            )
            for part in parts
        }
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the parts have their weights."""

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Configures training as `keras.Model.compile`.

        Raises:
            ValueError: If parts that share embeddings are given an optimiser each, or
                `jit_compile` is asked for without `max_positions`.
        """
        name = type(self).__name__
        check_jit(name, kwargs.get("jit_compile"), self.max_positions)
        super().compile(*args, **kwargs)
        if self.embeddings == "shared" and decoupled_part_of(self.optimizer):
            raise ValueError(
                f"{name}: with a DecoupledOptimizer a variable belongs to one part; "
                'give `embeddings="separate"` or "disentangled".'
            )

    # === Declarations ===

    @property
    def vocabulary_size(self) -> int:
        """V."""
        return self.discriminator.vocabulary_size

    @property
    def term_specs(self) -> list[TermSpec]:
        return [
            TermSpec("generator"),
            TermSpec("discriminator", self.discriminator_weight),
        ]

    @property
    def parts(self) -> Mapping[str, Sequence[Any]]:
        return {
            "generator": [self.generator],
            "discriminator": [self.discriminator, self.detection_head],
        }

    # === Computation ===

    def encoder(self) -> TransformerEncoder:
        """Returns the detector's encoder, to be fine-tuned.

        With disentangled embeddings it is a copy whose embeddings are its own.
        """
        if self.embeddings != "disentangled":
            return self.discriminator
        return _with_own_embedding(self.discriminator)

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns the logits `[B, T]` of having been replaced.

        Args:
            inputs: Tokens int `[B, T]`, `(tokens, segments)`; or a batch of `fit()`,
                whose masked tokens the generator replaces first.
            training: Whether dropout acts.
        """
        parts = inputs if isinstance(inputs, tuple | list) else (inputs,)
        tokens, segments = parts[0], parts[1] if len(parts) == 2 else None
        if len(parts) > 2:
            batch = self._batch(inputs, None)
            tokens, segments = self.corrupted(batch, training).tokens, batch.segments
        features = self.discriminator(tokens, segments, training=training)
        return self.detection_head(features)

    def _batch(self, x: Any, y: Any) -> MaskedBatch:
        return masked_batch(type(self).__name__, x, y, self.vocabulary_size)

    def corrupted(self, batch: MaskedBatch, training: bool = False) -> Corrupted:
        """Returns a batch with masked tokens replaced, and the generator's loss."""
        places, weights = batch.places(self.max_positions)
        logits = self.generator.logits_at(batch.shown, places, batch.segments, training)
        tokens = tf.gather_nd(batch.tokens, places)
        loss, extra = generator_loss(logits, tokens, weights)

        def draw(shape: Sequence[Any], seed: tf.Tensor) -> tf.Tensor:
            return tf.random.stateless_uniform(shape, seed, dtype=tf.float64)

        # By row and place, so that replicas draw what one device does.
        uniforms = replica_noise(draw, sizes_of(batch.tokens), self.draw_seeds, 0)
        drawn = corrupted_tokens(
            drawable(logits, self.discriminator.padding_id),
            tokens,
            weights,
            tf.gather_nd(uniforms, places),
            temperature=self.temperature,
        )
        found = tf.tensor_scatter_nd_update(batch.tokens, places, drawn)
        return Corrupted(found, TermLoss(loss, weights), extra.correct)

    # === Objective ===

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> Mapping[str, TermLoss]:
        batch = self._batch(x, y)
        tokens, of_generator, correct = self.corrupted(batch, training)
        self.generator_metric.update_state(correct, of_generator.weights)
        labels = detection_labels(batch.tokens, tokens, batch.positions)
        features = self.discriminator(tokens, batch.segments, training=training)
        padding = self.discriminator.padding(batch.tokens)
        loss, extra = detector_loss(self.detection_head(features), labels, padding)
        weights = tf.cast(extra.weights, tf.float32)
        self.f1_metric.update_state(labels, extra.probs, weights)
        self.replaced_metric.update_state(tf.cast(labels, tf.float32), weights)
        return {
            "generator": of_generator,
            "discriminator": TermLoss(loss, weights),
        }

    watches_gradients = True

    def watch_gradients(
        self,
        gradients: list[Gradient],
        variables: list[keras.Variable],
        unit: tf.Tensor,
    ) -> None:
        owners = part_owners(self.parts)
        for part, metric in self.norm_metrics.items():
            own = [
                gradient
                for gradient, variable in zip(gradients, variables, strict=True)
                if owners.get(id(variable)) == part
            ]
            norm = tf.cast(gradient_lists.global_norm(own), unit.dtype)
            metric.update_state(norm / unit)

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "generator": serialize(self.generator.encoder),
            "discriminator": serialize(self.discriminator),
            "discriminator_weight": serialize(self.discriminator_weight),
            "embeddings": self.embeddings,
            "temperature": self.temperature,
            "max_positions": self.max_positions,
            "seed": self.seed,
        }


def drawable(logits: tf.Tensor, padding_id: int) -> tf.Tensor:
    """Returns logits by which padding, which nobody would see, is not drawn.

    Args:
        logits: `[N, V]`.
        padding_id: Of what is no token.
    """
    is_padding = tf.one_hot(padding_id, logits.shape[-1], True, False)
    return tf.where(is_padding, tf.cast(logits.dtype.min, logits.dtype), logits)


def _check_encoders(name: str, *encoders: Any) -> None:
    for argument, encoder in zip(("generator", "discriminator"), encoders, strict=True):
        if not isinstance(encoder, TransformerEncoder):
            raise ValueError(
                f"{name}: `{argument}` must be an rlm_tf.layers.TransformerEncoder, "
                f"found {type(encoder).__name__}."
            )
    if encoders[0] is encoders[1] or encoders[0].embedding is encoders[1].embedding:
        raise ValueError(
            f"{name}: generator and discriminator must be two encoders, found one; "
            "`embeddings` says what they share."
        )
    sizes = [encoder.vocabulary_size for encoder in encoders]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"{name}: generator and discriminator must have one vocabulary, found "
            f"sizes {sizes[0]} and {sizes[1]}."
        )


def _disentangled(
    encoder: TransformerEncoder, base: EncoderEmbedding
) -> TransformerEncoder:
    """Returns an encoder whose embeddings begin with those of a generator."""
    options = encoder.embedding_options(Seeds(encoder.seed).next())
    if options["width"] != base.width:
        raise ValueError(
            "Electra: disentangled embeddings need encoders of one `embedding_width`, "
            f"found {base.width} and {options['width']}."
        )
    embedding = DisentangledEmbedding(**options, base=base, name="embedding")
    return encoder.with_embedding(embedding)


def _with_own_embedding(encoder: TransformerEncoder) -> TransformerEncoder:
    """Returns a copy of an encoder whose embeddings are no one else's."""
    options = encoder.embedding_options(0)
    embedding = EncoderEmbedding(**options, name="embedding")
    matrix = encoder.embedding.matrix()
    for own, weight in zip(embedding.weights, encoder.embedding.weights, strict=True):
        own.assign(weight)
    table = embedding.token_embedding.embeddings
    table.assign(tf.cast(matrix, table.dtype))
    return encoder.with_embedding(embedding)
