"""A language model that learns from a teacher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_range
from rlm_tf.distillation import KD, Strategy
from rlm_tf.models.distillation.language_teachers import (
    ModelTeachers,
    RestrictedTeacher,
    teachers_of,
)
from rlm_tf.models.distillation.own_samples import own_samples, said_of_samples
from rlm_tf.models.distillation.placed import flat_weights, window_and_places
from rlm_tf.models.distillation.said import Said
from rlm_tf.models.distillation.strategies import (
    term_names,
    term_of,
    weighted_strategies,
)
from rlm_tf.models.distillation.teacher_predictions import TeacherPredictions
from rlm_tf.models.language.activation_penalties import Activations
from rlm_tf.models.language.batch import checked_batch, tokens_of
from rlm_tf.models.language.stateful_language_model import StatefulLanguageModel
from rlm_tf.models.language.wrapped_language_model import WrappedLanguageModel
from rlm_tf.nested_config import made_objects
from rlm_tf.objective_model.term import (
    Coefficient,
    TermLoss,
    TermSpec,
    check_coefficient,
)
from rlm_tf.objectives.lumped_probs import LumpedProbs, lumped_divergence
from rlm_tf.seeds import Seeds
from rlm_tf.untracked import Untracked

_ON_POLICY = "_on_policy"
# Variables that each replica has for itself.
_OF_REPLICAS = tf.distribute.DistributedValues


@keras.saving.register_keras_serializable("rlm_tf")
class LanguageDistillation(WrappedLanguageModel):
    """Trains a language model on its text and on what a teacher says of each token.

        student_weight nll + further terms of the student + coefficients x strategies

    Each strategy, of outputs alone, is a term with its metric, a mean over tokens. The
    teacher reads the windows that the student reads, in evaluation mode; language
    models carry their states from window to window. `TeacherPredictions`, stored once,
    cost no run of a teacher; the batches are then those of `PlacedBatches`,
    `(((tokens, start), places), next_tokens, weights)`.

    With `KD(1.0)` and a plain student, targets and teacher share one softmax.
    Knowledge distillation from a restricted model is the noising loss of
    `InducedModelMatching` with `OwnContexts`, up to the teacher's entropy.

    With `on_policy` a share of what the strategies count is of texts that the student
    says itself (GKD; Agarwal et al. 2024): of each window as many tokens behind its
    first one, without a gradient through the draws. So it learns where its own mistakes
    lead, with `GeneralisedJSD` or `ReverseKD` as a rule. Each strategy then has a
    second term, `<name>_on_policy`; a student with states and a teacher that runs are
    needed.

    The student may itself be wrapped in `InducedModelMatching`. Calling, evaluating and
    exporting give the student. The teacher is no part of files and never trained;
    checkpoints have what it carries.

    Args:
        teacher: A language model, a list of such, whose probabilities are averaged, a
            `RestrictedModel`, or `TeacherPredictions`. None: as loaded from a file;
            `set_teacher()` before fit().
        student: A language model of the same vocabulary.
        losses: Strategies of `rlm_tf.distillation` that need outputs, and perhaps
            labels, or pairs of one and its coefficient. Of `TeacherPredictions`
            `KD(temperature)` at theirs.
        student_weight: Coefficient of `nll` in training.
        on_policy: The share, in [0, 1].
        seed: Of what the student says.
        **kwargs: Of `WrappedLanguageModel`.

    Raises:
        ValueError: If there is no strategy, one needs more than outputs and labels, or
            teacher and student do not fit.
    """

    def __init__(
        self,
        teacher: Any,
        student: keras.Model,
        losses: Strategy | Sequence[Any],
        *,
        student_weight: Coefficient = 1.0,
        on_policy: float = 0.0,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        name = type(self).__name__
        check_range(name, 0.0, 1.0, on_policy=on_policy)
        check_integer(name, "seed", seed, 0)
        super().__init__(student, **kwargs)
        self.on_policy = on_policy
        self.seed = seed
        if on_policy:
            self.sample_seeds = Seeds(seed, self).generator()
            if not self.view.has_states:
                raise ValueError(
                    f"{name}: `on_policy` needs a student with states, which says one "
                    f"token after the other; {type(self.view.model).__name__} has none."
                )
        pairs = weighted_strategies(name, losses)
        self.strategies = [strategy for strategy, _ in pairs]
        self.coefficients = [coefficient for _, coefficient in pairs]
        self.names = term_names(self.strategies)
        check_coefficient(name, "student_weight", student_weight)
        self.student_weight = student_weight
        for strategy in self.strategies:
            _check_outputs_are_enough(name, strategy)
            if not strategy.built:
                strategy.build((None, self.vocabulary_size), (None,))
        self.set_teacher(teacher)
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the student has its weights."""

    # === Declarations ===

    @property
    def student(self) -> keras.Model:
        """The student, as it was given."""
        return self.model

    @property
    def teacher(self) -> Any:
        """The teacher; `set_teacher` replaces it."""
        return self._teacher.value

    def set_teacher(self, teacher: Any) -> None:
        """Sets the teacher, of which a loaded model has none; before fit().

        Raises:
            ValueError: If it does not fit the student or the strategies, or carries a
                state and was made outside of the student's strategy.
        """
        name = type(self).__name__
        self._teacher = Untracked(teacher)
        self._teachers: Untracked = Untracked(None)
        if teacher is None:
            return
        size: int | None
        if isinstance(teacher, TeacherPredictions):
            size = teacher.vocabulary_size
            if self.on_policy:
                raise ValueError(
                    f"{name}: stored predictions are of one text; `on_policy` needs a "
                    "teacher that runs on what the student says."
                )
            for strategy in self.strategies:
                _check_is_stored(name, strategy, teacher)
        else:
            teachers = teachers_of(name, teacher)
            self._teachers = Untracked(teachers)
            size = teachers.vocabulary_size
            replicas = self.distribute_strategy.num_replicas_in_sync
            for index, memory in enumerate(teachers.memories):
                own = [isinstance(v, _OF_REPLICAS) for v in memory.variables]
                if replicas > 1 and not all(own):
                    raise ValueError(
                        f"{name}: a teacher carries a state from window to window, "
                        f"which each of {replicas} replicas needs for itself: make or "
                        "load it within `strategy.scope()`."
                    )
                # tf.train.Checkpoint does not look into lists of a Keras model.
                setattr(self, f"teacher_memory_{index}", memory)
        words = self.vocabulary_size
        if size is not None and words is not None and size != words:
            raise ValueError(
                f"{name}: teacher and student must have one vocabulary, found "
                f"{size} and {words} words."
            )

    @property
    def losses_and_coefficients(self) -> list[tuple[Strategy, Coefficient]]:
        """What was given as `losses`."""
        return list(zip(self.strategies, self.coefficients, strict=True))

    @property
    def frozen_models(self) -> Sequence[keras.layers.Layer]:
        teachers = self._teachers.value
        own = [] if teachers is None else teachers.models
        return [*own, *super().frozen_models]

    @property
    def parts(self) -> Mapping[str, Sequence[Any]]:
        """Those of the student."""
        return getattr(self.model, "parts", {})

    @property
    def total_clip_norm(self) -> float | None:
        """None where each term is clipped on its own."""
        return None if self._clips_apart else self.clip_norm

    @property
    def _clips_apart(self) -> bool:
        return any(spec.clip_norm is not None for spec in self.inner_specs)

    @property
    def term_specs(self) -> list[TermSpec]:
        specs = [
            spec._replace(coefficient=self.student_weight)
            if spec.name == "nll"
            else spec
            for spec in self.inner_specs
        ]
        clip = self.clip_norm if self._clips_apart else None
        shares = {"": 1 - self.on_policy, _ON_POLICY: self.on_policy}
        return specs + [
            TermSpec(
                f"{name}{suffix}",
                _times(coefficient, share),
                clip_norm=clip,
                evaluated=False,
            )
            for suffix, share in shares.items()
            if share or not suffix
            for name, coefficient in zip(self.names, self.coefficients, strict=True)
        ]

    # === Computation ===

    def window_of(self, x: Any) -> Any:
        return window_and_places(x)[0]

    # === Objective ===

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> Mapping[str, TermLoss]:
        window, places = window_and_places(x)
        if not training:
            return self.language_terms(window, y, sample_weight, training)
        name = type(self).__name__
        window, y = checked_batch(name, window, y, sample_weight, self.vocabulary_size)
        targets = tf.reshape(y, [-1])
        said = self._said(window, places, targets, sample_weight)
        terms, outputs, soft = self._student_terms(window, y, sample_weight, said)
        logits = None
        for own, strategy in zip(self.names, self.strategies, strict=True):
            if soft is not None and _is_plain(strategy):
                terms[own] = TermLoss(soft - said.entropy(), said.weights)
                continue
            if logits is None:
                logits = self.view.logits(outputs, tf.range(tf.size(targets)))
            terms[own] = self._strategy_term(strategy, said, logits, targets)
        return terms | self._on_policy_terms(window) if self.on_policy else terms

    def _on_policy_terms(self, window: Any) -> dict[str, TermLoss]:
        """Returns the strategies' terms on what the student says itself."""
        tokens = tokens_of(window)
        length = tokens.shape[1] or tf.shape(tokens)[1]
        own = own_samples(self.view, tokens[:, 0], length, self.sample_seeds)
        found = said_of_samples(self.view, self._teachers.value, own)
        said, logits, weights = found
        # What comes next in such a text; labels are of it, too.
        labels = tf.reshape(tf.roll(own, -1, axis=1), [-1])
        return {
            f"{name}{_ON_POLICY}": term_of(
                strategy, (said, logits), weights, labels=labels
            )
            for name, strategy in zip(self.names, self.strategies, strict=True)
        }

    def _student_terms(
        self, window: Any, y: tf.Tensor, sample_weight: Any, said: Said
    ) -> tuple[dict[str, TermLoss], tf.Tensor, tf.Tensor | None]:
        """Returns the student's own terms, its outputs, and its soft cross-entropy.

        The last is None where no strategy shares a softmax with the targets.
        """
        plain = isinstance(self.model, StatefulLanguageModel)
        if not plain:
            with self.view.recorded_outputs() as found:
                terms = self.language_terms(window, y, sample_weight, True)
            return terms, found["outputs"], None
        seen = Activations()
        outputs = self.model.features(window, True, seen)
        soft = None
        if any(map(_is_plain, self.strategies)):
            nll, soft = self.view.joint_soft(outputs, y, said.probs())
        else:
            nll = self.view.nll(outputs, y)
        terms = {"nll": TermLoss(nll, sample_weight)}
        return terms | self.model.further_terms(seen, sample_weight), outputs, soft

    def _said(
        self, window: Any, places: Any, targets: tf.Tensor, sample_weight: Any
    ) -> Said:
        """Returns what the teacher says of each token."""
        name, teacher = type(self).__name__, self.teacher
        if teacher is None:
            raise ValueError(
                f"{name}: no teacher. A loaded model has none, because files hold the "
                "student alone: `set_teacher()` before fit()."
            )
        if not isinstance(teacher, TeacherPredictions):
            teachers: RestrictedTeacher | ModelTeachers = self._teachers.value
            log_probs = tf.stop_gradient(teachers.log_probs(window))
            return Said(log_probs, teachers.weights(window, sample_weight))
        if places is None:
            raise ValueError(
                f"{name}: stored predictions are found by the places of tokens; "
                "expected batches (((tokens, start), places), next_tokens, weights), "
                "those of `PlacedBatches`."
            )
        weights = flat_weights(targets, sample_weight)
        found = teacher.at(tf.reshape(places, [-1]), targets, weights > 0)
        return Said(found, weights)

    def _strategy_term(
        self, strategy: Strategy, said: Said, logits: tf.Tensor, targets: tf.Tensor
    ) -> TermLoss:
        if not isinstance(said.given, LumpedProbs):
            pair = said.given, logits
            return term_of(strategy, pair, said.weights, labels=targets)
        assert isinstance(strategy, KD)
        lumped = said.given.constant(logits.dtype)
        found = lumped_divergence(logits / strategy.temperature, lumped)
        return TermLoss(strategy.temperature**2 * found.loss, said.weights)

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            # Never part of a file.
            "teacher": None,
            "student": serialize(self.model),
            "losses": [
                [serialize(strategy), serialize(coefficient)]
                for strategy, coefficient in self.losses_and_coefficients
            ],
            "student_weight": serialize(self.student_weight),
            "on_policy": self.on_policy,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """Returns the model of a config; it has no teacher."""
        return cls(**made_objects(config, custom_objects))


def _times(coefficient: Coefficient, share: float) -> Coefficient:
    """Returns a share of a number or of a schedule."""
    if share == 1:
        return coefficient
    if callable(coefficient):
        return lambda step: share * tf.cast(coefficient(step), tf.float32)
    return share * coefficient


def _is_plain(strategy: Strategy) -> bool:
    """Whether a loss is a soft cross-entropy less what the teacher alone decides."""
    return type(strategy) is KD and strategy.temperature == 1.0


def _check_outputs_are_enough(name: str, strategy: Strategy) -> None:
    needs = [need for need in strategy.needs if need != "labels"]
    if needs or strategy.teacher_layer_name is not None:
        what = " and ".join(needs) if needs else "outputs of layers"
        raise ValueError(
            f"{name}: {type(strategy).__name__} needs {what}; language models are "
            "compared by their outputs."
        )


def _check_is_stored(
    name: str, strategy: Strategy, teacher: TeacherPredictions
) -> None:
    if type(strategy) is not KD or strategy.temperature != teacher.temperature:
        own = getattr(strategy, "temperature", None)
        at = "" if own is None else f" at temperature {own:g}"
        raise ValueError(
            f"{name}: {teacher.path} holds {teacher.k} probabilities a token at "
            f"temperature {teacher.temperature:g}, which is enough for KD at that "
            f"temperature alone; found {type(strategy).__name__}{at}."
        )
