"""Induced model matching while an encoder is fine-tuned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.data.text.special_tokens import FIRST_IDS, SpecialIds
from rlm_tf.layers.basic.replica_noise import replica_noise, sizes_of
from rlm_tf.metrics.declared import declared
from rlm_tf.models.encoders.given_predictions import GivenPredictions
from rlm_tf.models.encoders.masked_batch import masked_batch
from rlm_tf.models.encoders.masked_language_model import MaskedLanguageModel
from rlm_tf.models.encoders.prefix_predictor import Hide, PrefixPredictor
from rlm_tf.models.encoders.sampled_prefixes import SampledPrefixes
from rlm_tf.models.encoders.sequence_classifier import SequenceClassifier
from rlm_tf.models.imm.in_batch_contexts import InBatchContexts
from rlm_tf.models.imm.matching import Matching, Window
from rlm_tf.nested_config import made_objects
from rlm_tf.numerics import at_least_single
from rlm_tf.objective_model.objective_model import ObjectiveModel
from rlm_tf.objective_model.term import (
    Coefficient,
    TermLoss,
    TermSpec,
    check_coefficient,
)
from rlm_tf.objectives.imm import induced_cross_entropy
from rlm_tf.objectives.replaced_tokens import generator_loss
from rlm_tf.restricted.restricted_model import RestrictedModel
from rlm_tf.seeds import Seeds

Contexts = InBatchContexts | SampledPrefixes


@keras.saving.register_keras_serializable("rlm_tf")
class InducedFineTuning(ObjectiveModel):
    """Fine-tunes on task + masked words + lambda * IMM (Muneeb and Ohannessian 2024).

    The encoder of the classifier also fills in masked words of a copy of each text, as
    in pre-training, and what it predicts behind a piece, on average over what may stand
    before it, is matched to a restricted model of pieces, such as `KneserNey(2)` of
    much text: the induced model of a piece is the mean of predictions behind it. It is
    made autoregressive by `PrefixPredictor`.

    As published, task and masked words are clipped together and IMM apart, each to
    `clip_norm`.

    `fit()` takes batches `((tokens, segments, masked tokens, positions), labels)`, as
    `ResumableBatches(LabelledBatches(...), transform=MaskedCopy(...))` gives them.
    Batches `((tokens, segments), labels)` evaluate the task alone.

    Args:
        classifier: The classifier.
        masked_model: A masked language model around the same encoder.
        restricted_model: P_hat of the next piece given the last one; None: no IMM.
            `restricted=` means the same.
        contexts: `InBatchContexts`, whose predictions are those of the batch and of its
            bank, with dropout as in the main pass unless `pass_mode="evaluation"`
            (`separate_clipping` says nothing here, IMM is clipped apart anyway), of
            each replica by itself, so that two do not equal one; or `SampledPrefixes`,
            as published, without dropout. Files do not hold them.
        mlm_weight: Of masked words.
        coefficient: lambda, a number or a schedule.
        hide: See `PrefixPredictor`.
        positions: Predictions of a text and step that are matched, drawn anew; None:
            all. First pieces, [SEP] and padding are not matched.
        clip_norm: None: nothing is clipped.
        special: Ids of special tokens; by default those of `encoder_vocabulary`.
        seed: Of the draws.
        **kwargs: Of `ObjectiveModel` and `keras.Model`.

    Raises:
        ValueError: If the models have other encoders or vocabularies, the restricted
            model's context is not one piece, or an argument is out of range.
    """

    def __init__(
        self,
        classifier: SequenceClassifier,
        masked_model: MaskedLanguageModel,
        restricted_model: RestrictedModel | None = None,
        contexts: Contexts | None = None,
        *,
        mlm_weight: Coefficient = 1.0,
        coefficient: Coefficient = 0.2,
        hide: Hide = "prefix",
        positions: int | None = 1,
        clip_norm: float | None = None,
        special: Sequence[int] = FIRST_IDS,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        name = type(self).__name__
        if restricted_model is None:
            # By its shorter name, too.
            restricted_model = kwargs.pop("restricted", None)
        super().__init__(
            clip_norm=clip_norm, **{"dtype": classifier.dtype_policy, **kwargs}
        )
        if masked_model.encoder is not classifier.encoder:
            raise ValueError(
                f"{name}: `masked_model` must be around the encoder of `classifier`."
            )
        check_coefficient(name, "mlm_weight", mlm_weight)
        check_coefficient(name, "coefficient", coefficient)
        if positions is not None:
            check_integer(name, "positions", positions, 1)
        if restricted_model is not None:
            _check_restricted(name, restricted_model, masked_model.vocabulary_size)
        self.classifier = classifier
        self.masked_model = masked_model
        self.restricted_model = restricted_model
        self.mlm_weight = mlm_weight
        self.coefficient = coefficient
        self.hide = hide
        self.positions = positions
        self.special = SpecialIds(*special)
        self.seed = seed
        self.predictor = PrefixPredictor(masked_model, hide, self.special)
        seeds = Seeds(seed, self)
        self.place_seeds = seeds.generator()
        self.context_seeds = seeds.generator()
        self.coverage_metric = declared(
            keras.metrics.Mean(name="imm_coverage"), "up", only_training=True
        )
        self.count_metric = declared(
            keras.metrics.Mean(name="imm_count"), "up", only_training=True
        )
        self._contexts: Contexts | None = None
        if contexts is not None:
            self.contexts = contexts
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the models have their weights."""

    @property
    def contexts(self) -> Contexts | None:
        """Where extended contexts come from; None after loading."""
        return self._contexts

    @contexts.setter
    def contexts(self, contexts: Contexts) -> None:
        if isinstance(contexts, InBatchContexts):
            contexts.prepare(self._matching(tf.zeros([0, self._width])))
        elif not isinstance(contexts, SampledPrefixes):
            raise ValueError(
                f"{type(self).__name__}: `contexts` must be InBatchContexts or "
                f"SampledPrefixes, found {type(contexts).__name__}."
            )
        self._contexts = contexts
        self.train_function = None

    # === Declarations ===

    @property
    def term_specs(self) -> list[TermSpec]:
        specs = [
            *self.classifier.term_specs,
            TermSpec("mlm", self.mlm_weight, evaluated=False),
        ]
        if self.restricted_model is not None:
            specs.append(
                TermSpec(
                    "imm", self.coefficient, clip_norm=self.clip_norm, evaluated=False
                )
            )
        return specs

    @property
    def joint_clip_norm(self) -> float | None:
        return self.clip_norm

    @property
    def total_clip_norm(self) -> float | None:
        """None: IMM is clipped apart."""
        return None

    @property
    def parts(self) -> Mapping[str, Sequence[Any]]:
        """Those of the classifier, whose head is that of masked words, too."""
        parts = dict(self.classifier.parts)
        return {**parts, "head": [*parts["head"], self.masked_model.head]}

    @property
    def frozen_models(self) -> list[keras.layers.Layer]:
        return [] if self.restricted_model is None else [self.restricted_model]

    # === Computation ===

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns what the classifier does; inputs are its or those of `fit()`."""
        parts = inputs[:2] if isinstance(inputs, tuple | list) else inputs
        return self.classifier(parts, training=training)

    # === Objective ===

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> Mapping[str, TermLoss]:
        name = type(self).__name__
        given = x if isinstance(x, tuple | list) else (x, None)
        task = self.classifier.objective_terms(given[:2], y, sample_weight, training)
        terms = dict(task)
        if len(given) == 2:
            if training:
                raise ValueError(
                    f"{name}: a batch without masked copies; give `fit()` those of "
                    "`ResumableBatches(batches, transform=MaskedCopy(...))`."
                )
            return terms
        if not training:
            return terms
        tokens, segments, shown, positions = given
        size = self.masked_model.vocabulary_size
        segments = segments if self.classifier.encoder.num_segments else None
        batch = masked_batch(name, (tokens, shown, positions), None, size)
        places, weights = batch.places(self.masked_model.max_positions)
        logits = self.masked_model.logits_at(shown, places, segments, training=True)
        wanted = tf.gather_nd(batch.tokens, places)
        terms["mlm"] = TermLoss(generator_loss(logits, wanted, weights).loss, weights)
        if self.restricted_model is not None:
            terms["imm"] = self._matched(batch.tokens, segments)
        return terms

    def _matched(self, tokens: tf.Tensor, segments: tf.Tensor | None) -> TermLoss:
        """Returns the loss of induced models."""
        if self.contexts is None:
            raise ValueError(
                f"{type(self).__name__}: no contexts. A loaded model has none, because "
                "files never hold texts: set `model.contexts` before fit()."
            )
        places = self._places(tokens)
        pieces = tf.gather_nd(tokens, places)
        if isinstance(self.contexts, SampledPrefixes):
            return self._sampled(tokens, places, self.contexts)
        has_dropout = self.contexts.pass_mode == "training"
        features = self.predictor.features_at(tokens, places, has_dropout, segments)
        step = tf.cast(self.optimizer.iterations, tf.int64)
        window = Window(
            pieces[:, tf.newaxis],
            tf.zeros_like(pieces)[:, tf.newaxis],
            None,
            step,
            tf.constant(True),
        )
        (found,) = self.contexts.match(self._matching(features), window).induced
        self._record(found.counts, found.least)
        assert found.loss is not None
        return TermLoss(found.loss, found.weights)

    def _sampled(
        self, tokens: tf.Tensor, places: tf.Tensor, contexts: SampledPrefixes
    ) -> TermLoss:
        assert self.restricted_model is not None

        def draw(shape: Sequence[Any], seed: tf.Tensor) -> tf.Tensor:
            return tf.random.stateless_uniform(shape, seed, 0, tf.int64.max, tf.int64)

        # By row and place, so that replicas draw what one device does.
        shape = [*sizes_of(tokens), contexts.k]
        randoms = replica_noise(draw, shape, self.context_seeds, 0)
        pieces = tf.gather_nd(tokens, places)
        drawn = contexts.draw(pieces, tf.gather_nd(randoms, places))
        has_segments = self.classifier.encoder.num_segments
        segments = drawn.segments if has_segments else None
        logits = self.predictor.at(drawn.texts, drawn.places, segments=segments)
        size = self.masked_model.vocabulary_size
        log_probs = tf.nn.log_softmax(at_least_single(logits))
        log_probs = tf.reshape(log_probs, [-1, contexts.k, size])
        probs = self.restricted_model.probs(pieces)
        loss = induced_cross_entropy(probs, tf.transpose(log_probs, [1, 0, 2])).loss
        weights = tf.cast(drawn.known, tf.float32)
        self._record(tf.cast(drawn.known, tf.int32) * contexts.k, 1)
        return TermLoss(loss, weights)

    def _places(self, tokens: tf.Tensor) -> tf.Tensor:
        """Returns row and place of the predictions that are matched, int64 `[N, 2]`."""
        is_special = [tf.equal(tokens, tf.cast(i, tokens.dtype)) for i in self.special]
        is_piece = ~tf.reduce_any(tf.stack(is_special), axis=0)
        follows = tf.pad(is_piece[:, 1:], [[0, 0], [0, 1]])
        candidates = is_piece & follows
        if self.positions is None:
            return tf.where(candidates)

        def draw(shape: Sequence[Any], seed: tf.Tensor) -> tf.Tensor:
            return tf.random.stateless_uniform(shape, seed)

        noise = replica_noise(draw, sizes_of(tokens), self.place_seeds, 0)
        noise = tf.where(candidates, noise, 2.0)
        rank = tf.argsort(tf.argsort(noise, stable=True), stable=True)
        return tf.where(candidates & (rank < self.positions))

    @property
    def _width(self) -> int:
        return self.classifier.encoder.embedding.width

    def _matching(self, features: tf.Tensor) -> Matching:
        view = GivenPredictions(self.masked_model, features)
        restricted = [] if self.restricted_model is None else [self.restricted_model]
        size = self.masked_model.vocabulary_size
        return Matching(view, restricted, size, 1, "direct", "paper")  # type: ignore[arg-type]

    # === Metrics ===

    def make_term_metrics(self, name: str) -> list[keras.metrics.Metric]:
        return [keras.metrics.Mean(name=name)]

    @property
    def inner_metrics(self) -> list[keras.metrics.Metric]:
        if self.classifier.is_regression:
            return []
        return [self.classifier.accuracy_metric]

    def _record(self, counts: tf.Tensor, least: int | tf.Tensor) -> None:
        counts = tf.cast(counts, tf.float32)
        self.coverage_metric.update_state(counts >= tf.cast(least, tf.float32))
        self.count_metric.update_state(counts)

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        masked = self.masked_model.get_config()
        # The classifier has it.
        masked.pop("encoder")
        return {
            **super().get_config(),
            "classifier": serialize(self.classifier),
            "masked_model": masked,
            "restricted_model": serialize(self.restricted_model),
            "mlm_weight": serialize(self.mlm_weight),
            "coefficient": serialize(self.coefficient),
            "hide": self.hide,
            "positions": self.positions,
            "special": list(self.special),
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        made = made_objects(config, custom_objects)
        encoder = made["classifier"].encoder
        made["masked_model"] = MaskedLanguageModel(
            **made_objects({**made["masked_model"], "encoder": encoder})
        )
        return cls(**made)


def _check_restricted(name: str, restricted: RestrictedModel, size: int) -> None:
    if restricted.context_length != 1:
        raise ValueError(
            f"{name}: `restricted_model` must have a context of one piece, found "
            f"{restricted.context_length}."
        )
    if restricted.vocabulary_size != size:
        raise ValueError(
            f"{name}: masked model and restricted model must share one vocabulary, "
            f"found sizes {size} and {restricted.vocabulary_size}."
        )
