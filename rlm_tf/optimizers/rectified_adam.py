"""Adam with the variance of its adaptive learning rate rectified."""

from __future__ import annotations

import math
from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("rlm_tf")
class RectifiedAdam(keras.optimizers.Optimizer):
    """RAdam (Liu et al. 2020, arXiv 1908.03265, algorithm 2).

        m_t = beta_1 m_tm1 + (1 - beta_1) g
        v_t = beta_2 v_tm1 + (1 - beta_2) g^2
        rho_inf = 2 / (1 - beta_2) - 1
        rho_t = rho_inf - 2 t beta_2^t / (1 - beta_2^t)
        r_t = sqrt( (rho_t - 4) (rho_t - 2) rho_inf
                    / ((rho_inf - 4) (rho_inf - 2) rho_t) )

    Where `rho_t > 4`, a step is `lr r_t m_hat / (sqrt(v_hat) + epsilon)`, with the
    bias-corrected moments `m_hat` and `v_hat`; before, it is `lr m_hat`. The published
    code waits for `rho_t >= 5`: with beta_2 = 0.999 the first adaptive step is the 5th
    by the paper and the 6th by the code.

    With `beta_1 = 0`, the setting of Melis for language models, there is no momentum
    and no variables for it.

    Args:
        learning_rate: lr, a number or a schedule.
        beta_1: Decay of the first moment, in [0, 1).
        beta_2: Decay of the second moment, in (0, 1).
        epsilon: Added to the root of the second moment.
        threshold: 4 for the paper's rule `rho_t > 4`, 5 for the code's `rho_t >= 5`.
        **kwargs: Of `keras.optimizers.Optimizer`. Its `global_clipnorm` clips what each
            replica has; models of this library clip by themselves.

    Raises:
        ValueError: If a decay is out of range or `threshold` is neither 4 nor 5.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        threshold: int = 4,
        name: str = "rectified_adam",
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        if not 0 <= beta_1 < 1:
            raise ValueError(
                f"RectifiedAdam: `beta_1` must lie in [0, 1), found {beta_1}."
            )
        if not 0 < beta_2 < 1:
            raise ValueError(
                f"RectifiedAdam: `beta_2` must lie in (0, 1), found {beta_2}."
            )
        if threshold not in (4, 5):
            raise ValueError(
                f"RectifiedAdam: `threshold` must be 4 or 5, found {threshold}."
            )
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.threshold = threshold

    def build(self, variables: list[Any]) -> None:
        if self.built:
            return
        super().build(variables)
        self._momentums: list[Any] = []
        if self.beta_1 > 0:
            self._momentums = self._slots(variables, "momentum")
        self._velocities = self._slots(variables, "velocity")

    def _slots(self, variables: list[Any], name: str) -> list[Any]:
        return [
            self.add_variable_from_reference(variable, name=name)
            for variable in variables
        ]

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        dtype = variable.dtype
        scale, is_adaptive, correction = (
            tf.cast(value, dtype) if value.dtype != tf.bool else value
            for value in self._factors()
        )
        learning_rate = tf.cast(learning_rate, dtype)
        gradient = tf.cast(gradient, dtype)
        index = self._get_variable_index(variable)
        velocity = self._velocities[index]
        decayed = velocity + (tf.square(gradient) - velocity) * (1.0 - self.beta_2)
        self.assign(velocity, decayed)
        moment = gradient
        if self._momentums:
            momentum = self._momentums[index]
            moment = momentum + (gradient - momentum) * (1.0 - self.beta_1)
            self.assign(momentum, moment)
        root = tf.sqrt(decayed * correction) + self.epsilon
        divisor = tf.where(is_adaptive, root, tf.ones_like(root))
        self.assign_sub(variable, learning_rate * scale * moment / divisor)

    def _factors(self) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns what multiplies the step, whether it is adaptive, 1/(1 - beta_2^t).

        In double precision: `rho_t` is a small difference of large numbers, and next to
        the threshold in the first steps.
        """
        t = tf.cast(tf.convert_to_tensor(self.iterations) + 1, tf.float64)
        power = tf.exp(t * math.log(self.beta_2))
        left = -tf.math.expm1(t * math.log(self.beta_2))
        rho_inf = 2.0 / (1.0 - self.beta_2) - 1.0
        rho = rho_inf - 2.0 * t * power / left
        is_adaptive = rho > 4.0 if self.threshold == 4 else rho >= 5.0
        # Where it is not used, it shall still be a number.
        safe = tf.maximum(rho, 4.0)
        rectification = tf.sqrt(
            ((safe - 4.0) * (safe - 2.0) * rho_inf)
            / ((rho_inf - 4.0) * (rho_inf - 2.0) * safe)
        )
        scale = tf.where(is_adaptive, rectification, tf.ones_like(rho))
        if self.beta_1 > 0:
            scale /= -tf.math.expm1(t * math.log(self.beta_1))
        return scale, is_adaptive, 1.0 / left

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "threshold": self.threshold,
        }
