"""Strategies for logits: what a student says is to be what its teacher says."""

from __future__ import annotations

import math
from typing import Any

import keras

from rlm_tf.checks import check_range
from rlm_tf.distillation.strategy import Strategy
from rlm_tf.objectives import distillation
from rlm_tf.typing import LossOutput

_LEAST = 1e-37


class _OfLogits(Strategy):
    """Base class: a loss of logits at a temperature.

    Args:
        temperature: T, positive.
        **kwargs: Of `Strategy`.
    """

    def __init__(self, temperature: float = 4.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_range(type(self).__name__, _LEAST, math.inf, temperature=temperature)
        self.temperature = temperature

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "temperature": self.temperature}


@keras.saving.register_keras_serializable("rlm_tf")
class KD(_OfLogits):
    """Hinton, Vinyals and Dean (2015); see `objectives.distillation.kd`.

    Args:
        temperature: T; the thesis has 4.
        **kwargs: Of `Strategy`.

    Raises:
        ValueError: If the temperature is not positive.
    """

    def losses_of(self, teacher: Any, student: Any, **context: Any) -> LossOutput:
        return distillation.kd(teacher, student, temperature=self.temperature)


@keras.saving.register_keras_serializable("rlm_tf")
class ReverseKD(_OfLogits):
    """The divergence the other way; see `objectives.distillation.reverse_kd`.

    Args:
        temperature: T.
        **kwargs: Of `Strategy`.

    Raises:
        ValueError: If the temperature is not positive.
    """

    def losses_of(self, teacher: Any, student: Any, **context: Any) -> LossOutput:
        return distillation.reverse_kd(teacher, student, temperature=self.temperature)


@keras.saving.register_keras_serializable("rlm_tf")
class StandardisedKD(_OfLogits):
    """KD of standardised logits; see `objectives.distillation.standardised_kd`.

    Args:
        temperature: T; the paper has 2.
        **kwargs: Of `Strategy`.

    Raises:
        ValueError: If the temperature is not positive.
    """

    def __init__(self, temperature: float = 2.0, **kwargs: Any) -> None:
        super().__init__(temperature, **kwargs)

    def losses_of(self, teacher: Any, student: Any, **context: Any) -> LossOutput:
        return distillation.standardised_kd(
            teacher, student, temperature=self.temperature
        )


@keras.saving.register_keras_serializable("rlm_tf")
class GeneralisedJSD(_OfLogits):
    """Between KD and its reverse; see `objectives.distillation.generalised_jsd`.

    Args:
        beta: b, in (0, 1).
        temperature: T.
        **kwargs: Of `Strategy`.

    Raises:
        ValueError: If a number is out of range.
    """

    def __init__(
        self, beta: float = 0.5, temperature: float = 1.0, **kwargs: Any
    ) -> None:
        super().__init__(temperature, **kwargs)
        check_range(type(self).__name__, 1e-12, 1 - 1e-12, beta=beta)
        self.beta = beta

    def losses_of(self, teacher: Any, student: Any, **context: Any) -> LossOutput:
        return distillation.generalised_jsd(
            teacher, student, beta=self.beta, temperature=self.temperature
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "beta": self.beta}


@keras.saving.register_keras_serializable("rlm_tf")
class DecoupledKD(_OfLogits):
    """KD in two parts; see `objectives.distillation.decoupled_kd`. Needs labels.

    Args:
        alpha: Weight of the label's part.
        beta: Weight of the other part.
        temperature: T.
        **kwargs: Of `Strategy`.

    Raises:
        ValueError: If a number is out of range.
    """

    needs = ("labels",)

    def __init__(
        self,
        alpha: float = 1.0,
        beta: float = 8.0,
        temperature: float = 4.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(temperature, **kwargs)
        check_range(type(self).__name__, 0.0, 1e30, alpha=alpha, beta=beta)
        self.alpha = alpha
        self.beta = beta

    def losses_of(self, teacher: Any, student: Any, **context: Any) -> LossOutput:
        return distillation.decoupled_kd(
            teacher,
            student,
            context["labels"],
            alpha=self.alpha,
            beta=self.beta,
            temperature=self.temperature,
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "alpha": self.alpha, "beta": self.beta}


@keras.saving.register_keras_serializable("rlm_tf")
class DIST(_OfLogits):
    """Correlations over classes and batch; see `objectives.distillation.dist`.

    Args:
        beta: Weight of the part by example.
        gamma: Weight of the part by class.
        temperature: T; the paper has 1, and 4 on CIFAR-100.
        **kwargs: Of `Strategy`.

    Raises:
        ValueError: If a number is out of range.
    """

    across = True

    def __init__(
        self,
        beta: float = 2.0,
        gamma: float = 2.0,
        temperature: float = 4.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(temperature, **kwargs)
        check_range(type(self).__name__, 0.0, 1e30, beta=beta, gamma=gamma)
        self.beta = beta
        self.gamma = gamma

    def losses_of(self, teacher: Any, student: Any, **context: Any) -> LossOutput:
        return distillation.dist(
            teacher,
            student,
            beta=self.beta,
            gamma=self.gamma,
            temperature=self.temperature,
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "beta": self.beta, "gamma": self.gamma}
