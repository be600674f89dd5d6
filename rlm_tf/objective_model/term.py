"""One weighted loss of an objective."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import keras
import tensorflow as tf

from rlm_tf.typing import Gradient

# (variables, scale per position) -> loss per position, and the gradient of
# sum(scale * loss), one a variable.
LossAndGradient: TypeAlias = Callable[
    [Sequence[Any], tf.Tensor], tuple[tf.Tensor, list[Gradient]]
]
# A number, a schedule of the optimiser's step, or any other function of it.
Coefficient: TypeAlias = (
    float
    | keras.optimizers.schedules.LearningRateSchedule
    | Callable[[tf.Tensor], tf.Tensor]
)


class TermSpec(NamedTuple):
    """What a model declares of one loss term; read whenever a step is traced.

    Attributes:
        name: Also the name of its metric.
        coefficient: Multiplies the term in the total loss; a function is called on the
            optimiser's step. In evaluation it is that of step 0, so that losses of
            different epochs can be compared.
        clip_norm: The gradient of this term alone is clipped to this global norm,
            before `coefficient` multiplies it. None: not clipped on its own.
        brings_gradient: Whether `TermLoss.loss_and_gradient` computes its gradient.
        part_factors: What this term's gradient to the variables of a part
            (`ObjectiveModel.parts`) is multiplied by after clipping, by the part's
            name; other parts have 1. None: nothing.
        switch: Scalar variable that multiplies the coefficient in training; None:
            nothing. A switch acts at once, a change of `phases` traces a step anew.
        phases: Phases (`ObjectiveModel.phase`) in which the term counts; None: all.
        evaluated: Whether evaluation has the term, too.
        trained: Whether training has it.
    """

    name: str
    coefficient: Coefficient = 1.0
    clip_norm: float | None = None
    brings_gradient: bool = False
    part_factors: Mapping[str, float | tf.Tensor] | None = None
    switch: Any = None
    phases: Collection[int] | None = None
    evaluated: bool = True
    trained: bool = True

    def counts(self, phase: int, training: bool) -> bool:
        """Whether the term is part of a step."""
        if not (self.trained if training else self.evaluated):
            return False
        return self.phases is None or phase in self.phases

    def coefficient_at(self, step: tf.Tensor, training: bool) -> float | tf.Tensor:
        """Returns what multiplies the term in the total loss."""
        value = coefficient_at(self.coefficient, step)
        if self.switch is None or not training:
            return value
        return tf.cast(value, tf.float32) * tf.cast(self.switch, tf.float32)


class TermLoss(NamedTuple):
    """What `objective_terms` returns of one term.

    Attributes:
        loss: Loss of each position or example, any shape, nats; None with
            `loss_and_gradient`.
        weights: Weight of each entry of `loss`, or None for ones.
        loss_and_gradient: See `Term`.
    """

    loss: tf.Tensor | None
    weights: tf.Tensor | None = None
    loss_and_gradient: LossAndGradient | None = None


class Term(NamedTuple):
    """One named loss: what it is, where it counts, how much and how it is clipped.

    What a `TermSpec` declares and what `objective_terms` returns, together; models
    without `term_specs` return a list of these.

    Attributes:
        name: Also the name of its metric.
        loss: Loss of each position or example, any shape, nats; None with
            `loss_and_gradient`.
        weights: Weight of each entry of `loss`, or None for ones. The term's value is
            `sum(loss * weights) / sum(weights)` over all replicas.
        coefficient: Multiplies the value in the total loss.
        clip_norm: The gradient of this term alone is clipped to this global norm,
            before `coefficient` multiplies it. None: not clipped on its own.
        loss_and_gradient: Computes loss and gradient together where the tape of the
            step cannot or must not (sequential backward passes, branches). It gets the
            variables and what each entry of the loss is multiplied by in the total, and
            returns the loss and one gradient a variable. Needs `weights`.
        variable_factor: What this term's gradient to a variable is multiplied by after
            clipping; None: nothing.
    """

    name: str
    loss: tf.Tensor | None
    weights: tf.Tensor | None = None
    coefficient: float | tf.Tensor = 1.0
    clip_norm: float | None = None
    loss_and_gradient: LossAndGradient | None = None
    variable_factor: Callable[[Any], float | tf.Tensor] | None = None

    @property
    def is_separate(self) -> bool:
        """Whether the term is differentiated on its own."""
        own = (self.clip_norm, self.loss_and_gradient, self.variable_factor)
        return any(option is not None for option in own)


def check_coefficient(
    owner: str, name: str, value: Any, most: float = math.inf
) -> None:
    """Raises ValueError unless a coefficient is a number in range, or a schedule.

    Args:
        owner: Name of the calling class; the message starts with it.
        name: Name of the argument.
        value: What was given.
        most: The largest number allowed; infinity itself never is.
    """
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        if not (0 <= float(value) <= most and float(value) < math.inf):
            allowed = "be finite and not negative"
            if most < math.inf:
                allowed = f"lie in [0, {most:g}]"
            raise ValueError(f"{owner}: `{name}` must {allowed}, found {value}.")
    elif not isinstance(value, keras.optimizers.schedules.LearningRateSchedule):
        raise ValueError(
            f"{owner}: `{name}` must be a number or a schedule, found "
            f"{type(value).__name__}."
        )


def coefficient_at(coefficient: Coefficient, step: tf.Tensor) -> float | tf.Tensor:
    """Returns a coefficient's value: the number itself, or the function at `step`."""
    if callable(coefficient):
        return tf.convert_to_tensor(coefficient(step))
    return coefficient


def coefficient_from_ratio(ratio: float) -> float:
    """Returns `lambda` for the ratio `r = lambda / (1 + lambda)`, appendix D.1.

    Raises:
        ValueError: If `ratio` is not in [0, 1).
    """
    if not 0 <= ratio < 1:
        raise ValueError(
            f"coefficient_from_ratio: `ratio` must lie in [0, 1), found {ratio}."
        )
    return ratio / (1.0 - ratio)


def ratio_from_coefficient(coefficient: float) -> float:
    """Returns the ratio `lambda / (1 + lambda)` of a coefficient `lambda >= 0`.

    Raises:
        ValueError: If `coefficient` is negative.
    """
    if coefficient < 0:
        raise ValueError(
            "ratio_from_coefficient: `coefficient` must not be negative, found "
            f"{coefficient}."
        )
    return coefficient / (1.0 + coefficient)
