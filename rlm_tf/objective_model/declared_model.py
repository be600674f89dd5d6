"""What a model declares of its objective: terms, parts, frozen models, phases."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.nested_config import NestedConfig
from rlm_tf.objective_model.term import Term, TermLoss, TermSpec
from rlm_tf.objective_model.worker_model import WorkerModel
from rlm_tf.typing import Gradient


class _CompletedModels(abc.ABCMeta):
    """Completes a model when its whole constructor has run: terms are known then."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        model = super().__call__(*args, **kwargs)
        model._complete()
        return model


class DeclaredModel(NestedConfig, WorkerModel, metaclass=_CompletedModels):
    """Base class of `ObjectiveModel`, which says what the declarations mean.

    Args:
        term_names: See `ObjectiveModel`.
        **kwargs: Passed to `keras.Model`.
    """

    def __init__(self, *, term_names: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.term_names = term_names
        # Not a weight, so that files stay as they are; checkpoints have it.
        self.phase = tf.Variable(0, trainable=False, name="phase")
        self._traced_phase = 0

    def _complete(self) -> None:
        tracked = {id(layer) for layer in self._flatten_layers()}
        for frozen in self.frozen_models:
            # Of others no variable is among this model's.
            if id(frozen) in tracked:
                frozen.trainable = False

    # === Declarations ===

    @property
    def term_specs(self) -> Sequence[TermSpec]:
        """What is declared of every term; read when a step is traced.

        Names are read once, when the constructor has run. A subclass that returns a
        list of `Term` needs none beside `term_names`.
        """
        return [TermSpec(name) for name in self.term_names]

    @property
    def parts(self) -> Mapping[str, Sequence[Any]]:
        """Layers (or variables) of each part, by its name; disjoint."""
        return {}

    @property
    def frozen_models(self) -> Sequence[keras.layers.Layer]:
        """Models that this one uses and never trains.

        Their `trainable` is False. Checkpoints of `ExactResume` hold a digest in place
        of their weights, which a resumed run must bring. A `.keras` file has them once,
        or not at all where a subclass holds them in an `rlm_tf.untracked.Untracked`,
        whose `trainable` is not touched either.
        """
        return ()

    @property
    def joint_clip_norm(self) -> float | None:
        """What the gradient of terms without a `clip_norm` is clipped to, if any."""
        return None

    def step_factor(self, x: Any) -> float | tf.Tensor | None:
        """What multiplies gradients of a step after clipping; None: nothing."""
        return None

    def has_step_factor(self, variable: keras.Variable) -> bool:
        """Whether `step_factor` multiplies the gradient of a variable."""
        return True

    def part_variables(self) -> dict[str, list[keras.Variable]]:
        """Returns the trainable variables of each part.

        Raises:
            ValueError: If two parts share a variable.
        """
        found: dict[str, list[keras.Variable]] = {}
        owners: dict[int, str] = {}
        for name, members in self.parts.items():
            found[name] = []
            for variable in _trainable_variables(members):
                owner = owners.setdefault(id(variable), name)
                if owner != name:
                    raise ValueError(
                        f"{type(self).__name__}: parts must be disjoint, found "
                        f"`{variable.path}` in `{owner}` and `{name}`."
                    )
                if not any(variable is other for other in found[name]):
                    found[name].append(variable)
        return found

    # === Objective ===

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> Mapping[str, TermLoss] | list[Term]:
        """Returns the losses of one batch by the names of their terms.

        It is called once a step, on each replica.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must override `objective_terms`."
        )

    def make_term_metrics(self, name: str) -> list[keras.metrics.Metric]:
        """Returns the metrics that are updated with a term's loss and weights."""
        return [keras.metrics.Mean(name=name)]

    def _terms(self, x: Any, y: Any, sample_weight: Any, training: bool) -> list[Term]:
        found = self.objective_terms(x, y, sample_weight, training=training)
        if isinstance(found, list):
            return found
        specs = {spec.name: spec for spec in self.term_specs}
        counted = [
            name for name in specs if specs[name].counts(self._traced_phase, training)
        ]
        wrong = sorted(set(found) - set(specs)) or sorted(set(counted) - set(found))
        if wrong:
            raise ValueError(
                f"{type(self).__name__}: `objective_terms` must return the terms of "
                f"`term_specs`, in this phase {counted}; found {list(found)}."
            )
        step = self.optimizer.iterations if training else tf.constant(0)
        return [
            self._term(specs[name], found[name], step, training) for name in counted
        ]

    def _term(
        self, spec: TermSpec, loss: TermLoss, step: tf.Tensor, training: bool
    ) -> Term:
        if (loss.loss_and_gradient is not None) > spec.brings_gradient:
            raise ValueError(
                f"{type(self).__name__}: term `{spec.name}` came with a "
                "`loss_and_gradient`; its `TermSpec` must say `brings_gradient=True`."
            )
        return Term(
            spec.name,
            **loss._asdict(),
            coefficient=spec.coefficient_at(step, training),
            clip_norm=spec.clip_norm,
            variable_factor=self._variable_factor(spec) if training else None,
        )

    def _variable_factor(
        self, spec: TermSpec
    ) -> Callable[[Any], float | tf.Tensor] | None:
        factors = spec.part_factors
        if factors is None:
            return None
        variables = self.part_variables()
        unknown = sorted(set(factors) - set(variables))
        if unknown:
            raise ValueError(
                f"{type(self).__name__}: `part_factors` of term `{spec.name}` names "
                f"{unknown}, the parts are {sorted(variables)}."
            )
        of_variable = {
            id(variable): factor
            for name, factor in factors.items()
            for variable in variables[name]
        }
        return lambda variable: of_variable.get(id(variable), 1.0)

    # Whether `watch_gradients` is called.
    watches_gradients = False

    def watch_gradients(
        self,
        gradients: list[Gradient],
        variables: list[keras.Variable],
        unit: tf.Tensor,
    ) -> None:
        """Sees the gradients of a step before the total is clipped; does nothing.

        Args:
            gradients: Sums over replicas, each row of slices once; `unit` times what
                they are.
            variables: Theirs.
            unit: What an optimiser for half precision multiplies losses by.
        """

    # === Phases ===

    def set_phase(self, phase: int) -> None:
        """Begins a phase; the next step is traced anew, with the terms of the phase."""
        self.phase.assign(phase)
        self.follow_phase()

    def follow_phase(self) -> None:
        """Has steps traced anew if `phase` was written since; restoring calls it."""
        trains = self.train_function is not None
        tests = self.test_function is not None
        if not self._note_phase():
            return
        # A loop that is running takes the new functions at its next step.
        if trains:
            self.make_train_function()
        if tests:
            self.make_test_function()

    def term_counts(self, name: str, training: bool) -> bool:
        """Whether a term is part of a step of the present phase.

        Losses of other terms are dropped; who asks need not compute them.
        """
        specs = {spec.name: spec for spec in self.term_specs}
        return specs[name].counts(self._traced_phase, training)

    def make_train_function(self, force: bool = False) -> Any:
        self._note_phase()
        return super().make_train_function(force)

    def make_test_function(self, force: bool = False) -> Any:
        self._note_phase()
        return super().make_test_function(force)

    def _note_phase(self) -> bool:
        """Forgets steps that were traced in another phase; whether it was another."""
        before, self._traced_phase = self._traced_phase, int(self.phase.numpy())
        if self._traced_phase == before:
            return False
        self.train_function = self.test_function = None
        return True


def _trainable_variables(members: Sequence[Any]) -> list[keras.Variable]:
    found: list[keras.Variable] = []
    for member in members:
        found.extend(
            member.trainable_variables
            if isinstance(member, keras.layers.Layer)
            else [member]
        )
    return found
