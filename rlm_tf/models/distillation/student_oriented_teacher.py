"""A teacher that is trained for its students."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

import keras
import tensorflow as tf

from rlm_tf.checks import (
    check_integer,
    check_option,
    check_range,
)
from rlm_tf.metrics.declared import declared
from rlm_tf.models.distillation.lipschitz_constants import lipschitz_constants
from rlm_tf.models.distillation.supervised import supervised
from rlm_tf.nested_config import made_objects
from rlm_tf.objective_model.objective_model import ObjectiveModel
from rlm_tf.objective_model.term import TermLoss, TermSpec
from rlm_tf.objective_model.worker_model import keras_arguments
from rlm_tf.objectives.lipschitz import Norm
from rlm_tf.training.ramp import ramp
from rlm_tf.training.temporal_ensemble import TemporalEnsemble

_RAMPS = ("linear", "cosine", "cyclic", "piecewise")


@keras.saving.register_keras_serializable("rlm_tf")
class StudentOrientedTeacher(ObjectiveModel):
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

    Logs: `cross_entropy`, `accuracy`, and in training `lipschitz`, the sum, and
    `consistency`, both without their weights.

    Args:
        model: A classifier; its outputs are logits `[B, K]`. Built.
        lipschitz: lambda_LR; 0: no such term. The published 1e-5 goes with
            `variant="authors"`, whose sum is tens of times as large.
        consistency: The largest lambda_CR; 0: no such term.
        ramp: How lambda_CR rises: "linear", "cosine", "cyclic" or "piecewise"; see
            `rlm_tf.training.ramp`.
        epochs: T, at whose end lambda_CR is the largest.
        ensemble: A `rlm_tf.training.TemporalEnsemble` of the training examples; without
            one there is no consistency. Neither weights nor files have it.
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
        norm: Norm = "one",
        ignore: Collection[str] = (),
        variant: Literal["thesis", "authors"] = "thesis",
        **kwargs: Any,
    ) -> None:
        name = type(self).__name__
        check_range(name, 0.0, 1e30, lipschitz=lipschitz, consistency=consistency)
        check_option(name, "ramp", ramp, _RAMPS)
        check_option(name, "norm", norm, ("one", "inf"))
        check_option(name, "variant", variant, ("thesis", "authors"))
        check_integer(name, "epochs", epochs, 1)
        super().__init__(**{"dtype": model.dtype_policy, **kwargs})
        self.model = model
        self.lipschitz = lipschitz
        self.consistency = consistency
        self.ramp = ramp
        self.epochs = epochs
        self.norm = norm
        self.ignore = tuple(ignore)
        self.variant = variant
        self.ensemble = ensemble
        if lipschitz:
            self._constants()
        if ensemble is not None and ensemble.variant != variant:
            raise ValueError(
                f"{name}: `ensemble` has variant {ensemble.variant!r}, expected "
                f"{variant!r}, as the teacher."
            )
        self.accuracy_metric = declared(keras.metrics.Mean(name="accuracy"), "up")
        # What lambda_CR is multiplied by, and the epoch that is going on.
        self.rise = tf.Variable(0.0, trainable=False)
        self.epoch = tf.Variable(-1, trainable=False, dtype=tf.int64)
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the model has its weights."""

    # === Declarations ===

    @property
    def term_specs(self) -> list[TermSpec]:
        specs = [TermSpec("cross_entropy")]
        if self.lipschitz:
            specs.append(TermSpec("lipschitz", self.lipschitz, evaluated=False))
        if self.consistency:
            specs.append(
                TermSpec(
                    "consistency", self.consistency, switch=self.rise, evaluated=False
                )
            )
        return specs

    # === Computation ===

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns the model's logits `[B, K]`; `inputs` are the model's."""
        return self.model(inputs, training=training)

    def fit(self, x: Any = None, *args: Any, **kwargs: Any) -> keras.callbacks.History:
        """Trains as `keras.Model.fit`, and ends the epochs of the ensemble."""
        given = keras_arguments("fit", x, *args, **kwargs)
        # Behind those that go on from a checkpoint.
        given["callbacks"] = [*(given.get("callbacks") or []), _Epochs()]
        return super().fit(**given)

    # === Objective ===

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> Mapping[str, TermLoss]:
        name = type(self).__name__
        x, ids = self._parts(x, training)
        found = supervised(
            name, self(x, training=training), y, sample_weight, self.accuracy_metric
        )
        terms = {"cross_entropy": found.term}
        if not training:
            return terms
        if self.lipschitz:
            total = tf.add_n(list(self._constants().values()))
            # Of each replica the same: their mean is the sum of the constants.
            terms["lipschitz"] = TermLoss(total[tf.newaxis], tf.ones([1]))
        if self.consistency:
            terms["consistency"] = self._consistency(ids, found.logits, found.weights)
        return terms

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
        if isinstance(x, tuple | list) and len(x) == 2:
            return x[0], x[1]
        if training and self.consistency:
            raise ValueError(
                f"{type(self).__name__}: no ids; expected batches ((x, ids), labels), "
                "or `consistency=0`."
            )
        return x, None

    # === Metrics ===

    def make_term_metrics(self, name: str) -> list[keras.metrics.Metric]:
        return [keras.metrics.Mean(name=name)]

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "model": keras.saving.serialize_keras_object(self.model),
            "lipschitz": self.lipschitz,
            "consistency": self.consistency,
            "ramp": self.ramp,
            "epochs": self.epochs,
            # Never part of a file.
            "ensemble": None,
            "norm": self.norm,
            "ignore": list(self.ignore),
            "variant": self.variant,
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> StudentOrientedTeacher:
        """Returns the model of a config; it has no ensemble."""
        return cls(**made_objects(config, custom_objects))


class _Epochs(keras.callbacks.Callback):
    """Ends the epochs of a teacher's ensemble, and sets what its weight is.

    An epoch ends where the next one begins: what a checkpoint holds is then whole,
    wherever it is written.
    """

    def __init__(self) -> None:
        super().__init__()
        self._begun = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        teacher = self.model
        if teacher.ensemble is not None and not self._begun:
            # By now the checkpoint is there.
            teacher.ensemble.resume()
        self._begun = True
        before = int(teacher.epoch.numpy())
        if teacher.ensemble is not None and before >= 0 and before != epoch:
            teacher.ensemble.end_epoch()
        teacher.epoch.assign(epoch)
        done = min(epoch + 1, teacher.epochs)
        teacher.rise.assign(ramp(teacher.ramp, done, teacher.epochs))

    def on_train_end(self, logs: Any = None) -> None:
        teacher = self.model
        if teacher.ensemble is not None:
            teacher.ensemble.end_epoch()
        teacher.epoch.assign(-1)
