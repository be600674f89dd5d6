"""A teacher that is trained for its students."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

import keras
import tensorflow as tf

from rlm_tf.checks import check_range
from rlm_tf.gradients import ordered_sum
from rlm_tf.metrics.declared import declared
from rlm_tf.models.distillation.lipschitz_constants import lipschitz_constants
from rlm_tf.models.distillation.student_inputs import inputs_and_ids
from rlm_tf.models.distillation.teacher_epochs import TeacherEpochs, of_weights
from rlm_tf.models.supervised import Supervised, supervised
from rlm_tf.nested_config import made_objects
from rlm_tf.objective_model.objective_model import ObjectiveModel
from rlm_tf.objective_model.term import TermLoss, TermSpec
from rlm_tf.objectives.distillation import correctness_ranking
from rlm_tf.objectives.lipschitz import Norm
from rlm_tf.replicas import with_rows_of_all
from rlm_tf.training.correctness_history import CorrectnessHistory
from rlm_tf.training.temporal_ensemble import TemporalEnsemble


@keras.saving.register_keras_serializable("rlm_tf")
class StudentOrientedTeacher(TeacherEpochs, ObjectiveModel):
    """Trains a classifier as a teacher (SoTeacher; Dong 2025, chapter 2).

        cross entropy + lambda_LR sum_layers Lip(layer) + lambda_CR(t) |f(x) - mean|^2

    A teacher that fits its labels best is not the best teacher. This one is kept smooth
    by the sum of its layers' Lipschitz constants, and consistent with what it said of
    an example in earlier epochs, by the squared distance of its probabilities to their
    mean. The weight of the second rises over the epochs; it is 0 of examples that were
    not seen in an earlier one.

    `fit()` takes batches `((x, ids), labels)`, perhaps with weights of examples behind:
    ids number the training examples from 0 on. Evaluation needs no ids: batches
    `(x, labels)`, or those of training. `call()` is that of `model`, which is what
    students learn from.

    Its rivals are options, with `lipschitz=0, consistency=0`: `l1`, `l2` (of
    `ObjectiveModel`), `label_smoothing`, `correctness_ranking`; images are mixed by
    `rlm_tf.data.ImageBatches`, whose labels may be probabilities.

    Logs: `cross_entropy`, `accuracy`, and in training `lipschitz`, the sum,
    `consistency`, `l1` and `correctness_ranking`, all without their weights.

    Args:
        model: A classifier; its outputs are logits `[B, K]`. Built.
        lipschitz: lambda_LR; 0: no such term. The published 1e-5 goes with
            `variant="authors"`, whose sum is tens of times as large: at the start of a
            WRN-40-2 1e-5 of it is 0.85 nats, of the exact constants 0.011.
        consistency: The largest lambda_CR; 0: no such term.
        ramp: How lambda_CR rises: "linear", "cosine", "cyclic" or "piecewise"; see
            `rlm_tf.training.ramp`.
        epochs: T, at whose end lambda_CR is the largest.
        ensemble: A `rlm_tf.training.TemporalEnsemble` of the training examples; without
            one there is no consistency. Neither weights nor files have it.
        l1: Coefficient of the sum of the sizes of all weights with two axes or more; 0:
            no such term.
        label_smoothing: Share of each label that all classes have alike, in training.
        correctness_ranking: Coefficient of `objectives.distillation.
            correctness_ranking`: of two neighbours in the batch, that which was right
            more often is to be the surer one; 0: no such term. Needs ids.
        correctness: A `rlm_tf.training.CorrectnessHistory` for it; neither weights nor
            files have it.
        norm: Of the constants: "one" or "inf".
        ignore: Paths of layers without a constant; see `lipschitz_constants`.
        variant: `"thesis"`, or `"authors"`: constants of convolutions are the sums of
            all their weights' sizes, and the first epoch counts twice in the means.
        **kwargs: Of `ObjectiveModel` and `keras.Model`.

    Raises:
        ValueError: If an option or a number is out of range, the variant of `ensemble`
            is another, or a layer of `model` has no known constant.
    """

    def __init__(
        self,
        model: keras.Model,
        *,
        lipschitz: float = 1e-5,
        consistency: float = 1.0,
        ramp: str = "linear",
        epochs: int,
        ensemble: TemporalEnsemble | None = None,
        l1: float = 0.0,
        label_smoothing: float = 0.0,
        correctness_ranking: float = 0.0,
        correctness: CorrectnessHistory | None = None,
        norm: Norm = "one",
        ignore: Collection[str] = (),
        variant: Literal["thesis", "authors"] = "thesis",
        **kwargs: Any,
    ) -> None:
        name = type(self).__name__
        check_range(name, 0.0, 1e30, l1=l1, correctness_ranking=correctness_ranking)
        check_range(name, 0.0, 1.0, label_smoothing=label_smoothing)
        super().__init__(**{"dtype": model.dtype_policy, **kwargs})
        self.model = model
        self.l1 = l1
        self.label_smoothing = label_smoothing
        self.correctness_ranking = correctness_ranking
        self.ensemble: TemporalEnsemble | None
        self.correctness: CorrectnessHistory | None
        self.take_options(
            lipschitz=lipschitz,
            consistency=consistency,
            ramp=ramp,
            epochs=epochs,
            norm=norm,
            ignore=ignore,
            variant=variant,
            ensemble=ensemble,
            correctness=correctness,
        )
        self.accuracy_metric = declared(keras.metrics.Mean(name="accuracy"), "up")
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the model has its weights."""

    # === Declarations ===

    @property
    def memories(self) -> list[Any]:
        both = (self.ensemble, self.correctness)
        return [memory for memory in both if memory is not None]

    @property
    def term_specs(self) -> list[TermSpec]:
        specs = [TermSpec("cross_entropy"), *self.teaching_specs()]
        for own in ("l1", "correctness_ranking"):
            if getattr(self, own):
                specs.append(TermSpec(own, getattr(self, own), evaluated=False))
        return specs

    # === Computation ===

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns the model's logits `[B, K]`; `inputs` are the model's."""
        return self.model(inputs, training=training)

    # === Objective ===

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> Mapping[str, TermLoss]:
        name = type(self).__name__
        x, ids = self._parts(x, training)
        found = supervised(
            name,
            self(x, training=training),
            y,
            sample_weight,
            self.accuracy_metric,
            smoothing=self.label_smoothing if training else 0.0,
        )
        terms = {"cross_entropy": found.term}
        if not training:
            return terms
        if self.lipschitz:
            terms["lipschitz"] = self.lipschitz_term()
        if self.consistency:
            terms["consistency"] = self._consistency(ids, found.logits, found.weights)
        if self.l1:
            terms["l1"] = of_weights(ordered_sum(list(map(_size, self._matrices()))))
        if self.correctness_ranking:
            terms["correctness_ranking"] = self._ranking(ids, found)
        return terms

    def _matrices(self) -> list[tf.Tensor]:
        weights = map(tf.convert_to_tensor, self.model.trainable_variables)
        return [weight for weight in weights if weight.shape.rank > 1]

    def _ranking(self, ids: tf.Tensor, found: Supervised) -> TermLoss:
        """Returns how far confidences are from the order of past correctness."""
        if self.correctness is None:
            raise ValueError(
                f"{type(self).__name__}: no correctness history. A loaded model has "
                "none, because files never hold what was right: give `correctness=`, "
                "or set `teacher.correctness` before fit()."
            )
        probs = tf.reduce_max(tf.nn.softmax(found.logits), axis=1)
        best = tf.argmax(found.logits, axis=1, output_type=tf.int32)
        rates = tf.cast(self.correctness.rates(ids), probs.dtype)
        self.correctness.update(ids, best == found.labels)
        variant = self.variant

        def losses(probs: tf.Tensor, rates: tf.Tensor) -> tf.Tensor:
            return correctness_ranking(probs, rates, ties=variant).loss

        rows = tf.shape(probs)[0]
        return TermLoss(with_rows_of_all(losses, rows, probs, rates), found.weights)

    def _consistency(
        self, ids: tf.Tensor, logits: tf.Tensor, weights: tf.Tensor
    ) -> TermLoss:
        """Returns distances to the means of earlier epochs, and adds to this one's."""
        if self.ensemble is None:
            raise ValueError(
                f"{type(self).__name__}: no ensemble. A loaded model has none, because "
                "files never hold what is said of examples: give `ensemble=`, or set "
                "`teacher.ensemble` before fit()."
            )
        probs = tf.nn.softmax(logits)
        known = getattr(self.ensemble, "num_classes", probs.shape[-1])
        if known != probs.shape[-1]:
            raise ValueError(
                f"{type(self).__name__}: the ensemble is of {known} classes, the model "
                f"has {probs.shape[-1]}."
            )
        means, counts = self.ensemble.targets(ids)
        distance = tf.reduce_sum((probs - tf.cast(means, probs.dtype)) ** 2, axis=1)
        self.ensemble.update(ids, probs)
        seen = tf.cast(counts > 0, tf.float32)
        return TermLoss(distance, tf.cast(weights, tf.float32) * seen)

    def _constants(self) -> dict[str, tf.Tensor]:
        variant: Literal["exact", "authors"] = "exact"
        if self.variant == "authors":
            variant = "authors"
        return lipschitz_constants(
            self.model, norm=self.norm, variant=variant, ignore=self.ignore
        )

    def _parts(self, x: Any, training: bool) -> tuple[Any, Any]:
        """Returns the model's inputs, and the ids of the examples, if there are any."""
        needed = training and bool(self.consistency or self.correctness_ranking)
        x, ids = inputs_and_ids(self.model, x, are_needed=needed)
        if needed and ids is None:
            raise ValueError(
                f"{type(self).__name__}: no ids; expected batches ((x, ids), labels), "
                "or `consistency=0`, and no `correctness_ranking`."
            )
        return x, ids

    # === Metrics ===

    def make_term_metrics(self, name: str) -> list[keras.metrics.Metric]:
        return [keras.metrics.Mean(name=name)]

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "model": keras.saving.serialize_keras_object(self.model),
            **self.options(),
            "l1": self.l1,
            "label_smoothing": self.label_smoothing,
            "correctness_ranking": self.correctness_ranking,
            # Never part of a file.
            "ensemble": None,
            "correctness": None,
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> StudentOrientedTeacher:
        """Returns the model of a config; it has no ensemble."""
        return cls(**made_objects(config, custom_objects))


def _size(weight: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.abs(tf.cast(weight, tf.float32)))
