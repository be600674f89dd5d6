"""A student that learns from a teacher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.distillation import Strategy, TaughtStrategy, Views
from rlm_tf.metrics.declared import declared
from rlm_tf.models.distillation.finite_teachers import check_finite_teacher
from rlm_tf.models.distillation.layer_paths import layer_at
from rlm_tf.models.distillation.preparation import Batches, prepare
from rlm_tf.models.distillation.rotated import images_apart, with_rotations
from rlm_tf.models.distillation.several_teachers import stacked_log_probs
from rlm_tf.models.distillation.strategies import (
    OUTPUT,
    free_shape,
    paths_of,
    term_names,
    term_of,
    weighted_strategies,
)
from rlm_tf.models.distillation.student_inputs import (
    check_classifier,
    inputs_and_ids,
    zeros_for,
)
from rlm_tf.models.distillation.student_labels import with_labels, without_labels
from rlm_tf.models.given_logits import no_probabilities
from rlm_tf.models.recording import recording
from rlm_tf.models.supervised import LEAST_ROWS
from rlm_tf.nested_config import made_objects
from rlm_tf.numerics import at_least_single, log_mean_exp
from rlm_tf.objective_model.objective_model import ObjectiveModel
from rlm_tf.objective_model.term import (
    Coefficient,
    TermLoss,
    TermSpec,
    check_coefficient,
)
from rlm_tf.untracked import Untracked


@keras.saving.register_keras_serializable("rlm_tf")
class Distillation(ObjectiveModel):
    """Trains a student on labels and on what a teacher says, or what it is made of.

    Any classifiers whose outputs are logits `[B, K]`, functional, nested or subclassed.
    `fit()` takes batches `(x, labels)`, and `((x, ids), labels)` where a strategy needs
    to know examples again: ids number them from 0 on.

    Each strategy is a term with its metric. In a step each network runs once,
    the teacher as in evaluation; what layers give is recorded on the way. Losses that
    compare examples compare those of all replicas.

    The teacher is never trained, and no part of files; whether it is `trainable` is not
    touched. `call()` is that of the student, which `.student` is.

    Logs: `cross_entropy`, `accuracy`, and in training each strategy by its name: that
    of its class, such as `decoupled_kd`, with `_2`, ... for further ones.

    Args:
        teacher: A classifier, or a list, whose probabilities are averaged (for
            strategies of outputs alone). None: as loaded from a file; `set_teacher()`
            before fit().
        student: A classifier. Built.
        losses: Strategies of `rlm_tf.distillation`, or pairs of one and its
            coefficient, a number or a schedule.
        student_weight: Coefficient of the cross-entropy of labels; 0: training has no
            such term, and needs no labels, unless a strategy does: batches `(x,)`.
        example: Inputs `[B, ...]` on which shapes of features are found; None: zeros,
            of the shapes that the models say.
        feature_shapes: Of each strategy the shapes of what both models give; None:
            found. Files have them.
        **kwargs: Of `ObjectiveModel` and `keras.Model`.

    Raises:
        ValueError: If there is no strategy, a layer is not there, or something does
            not fit.
    """

    def __init__(
        self,
        teacher: keras.Model | Sequence[keras.Model] | None,
        student: keras.Model,
        losses: Strategy | Sequence[Any],
        *,
        student_weight: Coefficient = 1.0,
        example: Any = None,
        feature_shapes: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> None:
        name = type(self).__name__
        check_classifier(name, "student", student)
        super().__init__(**{"dtype": student.dtype_policy, **kwargs})
        self.student = student
        pairs = weighted_strategies(name, losses)
        self.strategies = [strategy for strategy, _ in pairs]
        self.coefficients = [coefficient for _, coefficient in pairs]
        self.names = term_names(self.strategies)
        self.teacher_changes = False
        self.set_teacher(teacher)
        check_coefficient(name, "student_weight", student_weight)
        self.student_weight = student_weight
        # A schedule may begin at 0.
        self._learns_labels = student_weight != 0
        self._is_unlabelled = False
        # It is not kept.
        self.example = None
        self.accuracy_metric = declared(keras.metrics.Mean(name="accuracy"), "up")
        self._student_layers = self._named_layers(student, "student")
        if feature_shapes is None:
            feature_shapes = self._found_shapes(example)
        self.feature_shapes = [
            tuple(free_shape(shape) for shape in pair) for pair in feature_shapes
        ]
        for strategy, shapes in zip(self.strategies, self.feature_shapes, strict=True):
            if not strategy.built:
                strategy.build(*shapes)
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the parts have their weights."""

    # === Declarations ===

    @property
    def teacher(self) -> keras.Model | Sequence[keras.Model] | None:
        """The teacher, or several; `set_teacher` replaces it."""
        return self._teacher.value

    def set_teacher(self, teacher: keras.Model | Sequence[keras.Model] | None) -> None:
        """Sets the teacher, of which a loaded model has none; before fit().

        Raises:
            ValueError: If there are several, and a strategy is of a layer, or one is
                no classifier, or the list is empty.
        """
        if isinstance(teacher, list | tuple) and not teacher:
            raise ValueError(f"{type(self).__name__}: `teacher` is an empty list.")
        self._teacher = Untracked(teacher)
        for each in self.teachers:
            check_classifier(type(self).__name__, "teacher", each)
        paths = [each.teacher_layer_name for each in self.strategies]
        named = [path for path in paths if path is not None]
        if named and len(self.teachers) > 1:
            raise ValueError(
                f"{type(self).__name__}: of several teachers the outputs are averaged; "
                f"{named[0]!r} is a layer: give one teacher."
            )

    @property
    def teachers(self) -> list[keras.Model]:
        """The teachers, one or several."""
        if self.teacher is None:
            return []
        given = self.teacher
        return list(given) if isinstance(given, list | tuple) else [given]

    @property
    def frozen_models(self) -> list[keras.layers.Layer]:
        """The teachers; none if their weights change by plan (`TeacherSchedule`)."""
        return [] if self.teacher_changes else self.teachers

    @property
    def losses_and_coefficients(self) -> list[tuple[Strategy, Coefficient]]:
        """What was given as `losses`."""
        return list(zip(self.strategies, self.coefficients, strict=True))

    @property
    def term_specs(self) -> list[TermSpec]:
        # Evaluation has nothing else to go by.
        weight = self.student_weight if self._learns_labels else 1.0
        specs = [TermSpec("cross_entropy", weight, trained=self._learns_labels)]
        return specs + [
            TermSpec(name, coefficient, evaluated=False)
            for name, coefficient in zip(self.names, self.coefficients, strict=True)
        ]

    # === Computation ===

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns the student's logits `[B, K]`."""
        return self.student(inputs, training=training)

    def _run_teacher(self, x: Any, ids: Any = None) -> dict[str, Any]:
        """Returns the output and the features of the teacher, without gradient."""
        teachers = self.teachers
        if not teachers:
            raise ValueError(
                f"{type(self).__name__}: no teacher. A loaded model has none, because "
                "files hold the student alone: `set_teacher()` before fit()."
            )
        if len(teachers) == 1:
            if ids is not None and getattr(teachers[0], "takes_ids", False):
                x = (x, ids)
            with recording(self._named_layers(teachers[0], "teacher")) as found:
                output = self._checked(teachers[0](x, training=False))
        else:
            logits = [self._checked(each(x, training=False)) for each in teachers]
            log_probs = stacked_log_probs(type(self).__name__, logits)
            found, output = {}, log_mean_exp(log_probs)
        stopped = {
            path: tf.stop_gradient(at_least_single(given))
            for path, given in {**found, OUTPUT: output}.items()
        }
        return stopped

    def _checked(self, output: tf.Tensor) -> tf.Tensor:
        return no_probabilities(
            f"{type(self).__name__}: teacher", output, least_rows=LEAST_ROWS
        )

    def _run_student(self, x: Any, training: bool) -> dict[str, Any]:
        with recording(self._student_layers) as found:
            output = self.student(x, training=training)
        return tf.nest.map_structure(at_least_single, {**found, OUTPUT: output})

    # === Training ===

    def prepare(
        self,
        batches: Batches,
        *,
        epochs: int | None = None,
        optimizer: keras.optimizers.Optimizer | None = None,
    ) -> dict[str, list[float]]:
        """Trains what strategies learn from the teacher alone; before fit().

        `FactorTransfer` and `SelfSupervised` have such a part. Files keep it.

        Args:
            batches: Those of `fit()`; labels do not matter. Of `ResumableBatches` each
                pass is another epoch, as in `fit()`.
            epochs: Passes over them; None: as many as each strategy was published with.
            optimizer: Of all parts, each by a copy; None: SGD with momentum 0.9 and a
                rate of 0.05.

        Returns:
            The mean loss of each epoch by the strategy's name.

        Raises:
            ValueError: If no strategy has such a part, or it is prepared.
        """
        name = type(self).__name__
        taught = {
            own: strategy
            for own, strategy in zip(self.names, self.strategies, strict=True)
            if isinstance(strategy, TaughtStrategy)
        }
        if not taught:
            raise ValueError(f"{name}.prepare: no strategy learns from the teacher.")

        def features(batch: Any) -> dict[str, tuple[tf.Tensor, tf.Tensor | None]]:
            x = batch[0] if isinstance(batch, tuple | list) else batch
            x, _ = self._parts(x, training=True)
            rotated = any("views" in each.needs for each in taught.values())
            found = self._run_teacher(with_rotations(name, x) if rotated else x)
            plain, views = images_apart(found) if rotated else (found, {})
            paths = {own: paths_of(strategy)[0] for own, strategy in taught.items()}
            return {own: (plain[p], views.get(p)) for own, p in paths.items()}

        return prepare(name, taught, features, batches, epochs, optimizer)

    def fit(self, *args: Any, **kwargs: Any) -> keras.callbacks.History:
        """Trains as `keras.Model.fit`.

        Raises:
            ValueError: If a strategy has a part that was not prepared, or a weight of a
                teacher is no number.
        """
        for teacher in self.teachers:
            check_finite_teacher(type(self).__name__, teacher)
        for own, strategy in zip(self.names, self.strategies, strict=True):
            if isinstance(strategy, TaughtStrategy) and not strategy.is_prepared:
                raise ValueError(
                    f"{type(self).__name__}: {own} has a part that learns from the "
                    "teacher alone: `prepare(batches)` before fit()."
                )
        return super().fit(*args, **kwargs)

    # === Objective ===

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> Mapping[str, TermLoss]:
        name = type(self).__name__
        x, ids = self._parts(x, training)
        rotated = training and any("views" in each.needs for each in self.strategies)
        if rotated:
            x = with_rotations(name, x)
        student = self._run_student(x, training)
        teacher = self._run_teacher(x, ids) if training else {}
        views: list[dict[str, tf.Tensor]] = [{}, {}]
        if rotated:
            (teacher, views[0]), (student, views[1]) = map(
                images_apart, (teacher, student)
            )
        self._is_unlabelled = training and y is None and not self._learns_labels
        output = student[OUTPUT]
        if self._is_unlabelled:
            found = without_labels(name, self.strategies, output, sample_weight)
        else:
            found = with_labels(name, output, y, sample_weight, self.accuracy_metric)
        terms = found.terms
        if not training:
            return terms
        for own, strategy in zip(self.names, self.strategies, strict=True):
            paths = paths_of(strategy)
            pair = (teacher[paths[0]], student[paths[1]])
            seen = None
            if "views" in strategy.needs:
                seen = Views(
                    *(each[path] for each, path in zip(views, paths, strict=True)),
                    *(each[OUTPUT] for each in views),
                )
            terms[own] = term_of(
                strategy, pair, found.weights, labels=found.labels, ids=ids, views=seen
            )
        return terms

    def _parts(self, x: Any, training: bool) -> tuple[Any, Any]:
        """Returns the models' inputs, and the ids of examples, if there are any."""
        needing: list[Any] = [each for each in self.strategies if "ids" in each.needs]
        needing += [t for t in self.teachers if getattr(t, "takes_ids", False)]
        x, ids = inputs_and_ids(self.student, x, are_needed=bool(needing))
        if training and needing and ids is None:
            raise ValueError(
                f"{type(self).__name__}: {type(needing[0]).__name__} needs the ids of "
                "examples; expected batches ((x, ids), labels)."
            )
        return x, ids

    # === Layers and shapes ===

    def _named_layers(self, model: keras.Model, role: str) -> dict[str, keras.Layer]:
        """Returns the layers of a model that strategies name, by path."""
        paths = {getattr(each, f"{role}_layer_name") for each in self.strategies}
        paths -= {None}
        name = f"{type(self).__name__}: {role}"
        return {path: layer_at(name, model, path) for path in sorted(paths)}

    def _found_shapes(self, example: Any) -> list[tuple[Any, Any]]:
        """Returns shapes of what both models give to each strategy."""
        if example is None:
            example = zeros_for(type(self).__name__, self.student)
        teacher = self._run_teacher(example)
        student = self._run_student(example, training=False)
        shapes = [found[OUTPUT].shape for found in (teacher, student)]
        if shapes[0][1:] != shapes[1][1:]:
            raise ValueError(
                f"{type(self).__name__}: teacher and student must tell the same "
                f"classes, found outputs {shapes[0].as_list()} and "
                f"{shapes[1].as_list()}."
            )
        paths = map(paths_of, self.strategies)
        return [(teacher[first].shape, student[other].shape) for first, other in paths]

    # === Metrics ===

    def _counted(
        self, training: bool, evaluated: frozenset[str] | None
    ) -> list[keras.metrics.Metric]:
        found = super()._counted(training, evaluated)
        hidden = self.accuracy_metric if training and self._is_unlabelled else None
        return [metric for metric in found if metric is not hidden]

    def make_term_metrics(self, name: str) -> list[keras.metrics.Metric]:
        return [keras.metrics.Mean(name=name)]

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            # Never part of a file.
            "teacher": None,
            "student": serialize(self.student),
            "losses": [
                [serialize(strategy), serialize(coefficient)]
                for strategy, coefficient in self.losses_and_coefficients
            ],
            "student_weight": serialize(self.student_weight),
            "example": None,
            "feature_shapes": [
                [list(shape) for shape in pair] for pair in self.feature_shapes
            ],
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """Returns the model of a config; it has no teacher."""
        return cls(**made_objects(config, custom_objects))
