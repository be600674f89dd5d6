"""Strategies for features that train a projection of their own."""

from __future__ import annotations

import math
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_range
from rlm_tf.distillation.precision import single_precision
from rlm_tf.distillation.regressor import Shape, projection, regressor
from rlm_tf.distillation.strategy import Strategy
from rlm_tf.objectives import feature_distillation as features
from rlm_tf.objectives.feature_pairs import same_size
from rlm_tf.typing import LossOutput

# Of VID: the least variance.
_LEAST_VARIANCE = 1e-5


@keras.saving.register_keras_serializable("rlm_tf")
class FitNet(Strategy):
    """Hints (Romero et al. 2015); see `objectives.feature_distillation.fitnet`.

    A convolution with batch normalisation and ReLU, of vectors a dense layer, brings
    the student's features to the shape of the teacher's.

    Args:
        teacher_layer_name: See `Strategy`.
        student_layer_name: See `Strategy`.
        **kwargs: Of `keras.Layer`.
    """

    def build(self, teacher_shape: Shape, student_shape: Shape) -> None:
        name = type(self).__name__
        self.regressor = regressor(name, student_shape, teacher_shape, relu=True)
        self.built = True

    def losses_of(
        self, teacher: Any, student: Any, training: bool = True, **context: Any
    ) -> LossOutput:
        return features.fitnet(teacher, self.regressor(student, training=training))


@keras.saving.register_keras_serializable("rlm_tf")
class CorrelationCongruence(Strategy):
    """CC of projected features; see `objectives.feature_distillation.correlation`.

    Args:
        teacher_layer_name: See `Strategy`.
        student_layer_name: See `Strategy`.
        width: Of both projections, which are trained; the published code has 128.
        **kwargs: Of `keras.Layer`.

    Raises:
        ValueError: If the width is not positive.
    """

    across = True

    def __init__(
        self,
        teacher_layer_name: str | None = None,
        student_layer_name: str | None = None,
        *,
        width: int = 128,
        **kwargs: Any,
    ) -> None:
        super().__init__(teacher_layer_name, student_layer_name, **kwargs)
        check_integer(type(self).__name__, "width", width, 1)
        self.width = width

    def build(self, teacher_shape: Shape, student_shape: Shape) -> None:
        self.of_teacher = projection("of_teacher", teacher_shape, self.width)
        self.of_student = projection("of_student", student_shape, self.width)
        self.built = True

    def losses_of(self, teacher: Any, student: Any, **context: Any) -> LossOutput:
        s, t = self.of_student(student), self.of_teacher(tf.stop_gradient(teacher))
        # Both projections are trained, and only the difference counts.
        return features.correlation(tf.zeros_like(s), s - t)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "width": self.width}


@keras.saving.register_keras_serializable("rlm_tf")
class VariationalInformation(Strategy):
    """VID; see `objectives.feature_distillation.variational`.

    The mean is made of the student's features by three 1 x 1 convolutions (of vectors
    dense layers) with ReLU between; the variance is one number a channel.

    Args:
        teacher_layer_name: See `Strategy`.
        student_layer_name: See `Strategy`.
        variance: What it is at first.
        **kwargs: Of `keras.Layer`.

    Raises:
        ValueError: If the variance is not positive.
    """

    def __init__(
        self,
        teacher_layer_name: str | None = None,
        student_layer_name: str | None = None,
        *,
        variance: float = 5.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(teacher_layer_name, student_layer_name, **kwargs)
        check_range(type(self).__name__, 2 * _LEAST_VARIANCE, 1e30, variance=variance)
        self.variance = variance

    @single_precision()
    def build(self, teacher_shape: Shape, student_shape: Shape) -> None:
        channels = teacher_shape[-1]
        # A dense layer acts on each pixel alone.
        self.mean = keras.Sequential(
            [
                keras.Input([*([None] * (len(student_shape) - 2)), student_shape[-1]]),
                keras.layers.Dense(channels, "relu", use_bias=False),
                keras.layers.Dense(channels, "relu", use_bias=False),
                keras.layers.Dense(channels, use_bias=False),
            ],
            name="mean",
        )
        start = math.log(math.expm1(self.variance - _LEAST_VARIANCE))
        self.scale = self.add_weight(
            name="scale",
            shape=(channels,),
            initializer=keras.initializers.Constant(start),
        )
        self.built = True

    def losses_of(self, teacher: Any, student: Any, **context: Any) -> LossOutput:
        if len(student.shape) == 4:
            teacher, student = same_size(type(self).__name__, teacher, student)
        variance = tf.nn.softplus(tf.convert_to_tensor(self.scale)) + _LEAST_VARIANCE
        return features.variational(teacher, self.mean(student), variance)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "variance": self.variance}


@keras.saving.register_keras_serializable("rlm_tf")
class ActivationBoundary(Strategy):
    """AB, of features before the activation; see
    `objectives.feature_distillation.activation_boundary`.

    Where shapes differ, a trained convolution (of vectors a dense layer) connects them.
    The thesis trains by this alone for 30 epochs first, with 3 / 1000 and the weight
    2^(i - L + 1) of layer i of L, and then without it.

    Args:
        teacher_layer_name: See `Strategy`.
        student_layer_name: See `Strategy`.
        margin: m.
        **kwargs: Of `keras.Layer`.

    Raises:
        ValueError: If the margin is negative.
    """

    def __init__(
        self,
        teacher_layer_name: str | None = None,
        student_layer_name: str | None = None,
        *,
        margin: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(teacher_layer_name, student_layer_name, **kwargs)
        check_range(type(self).__name__, 0.0, 1e30, margin=margin)
        self.margin = margin

    def build(self, teacher_shape: Shape, student_shape: Shape) -> None:
        self.connector = None
        if tuple(teacher_shape[1:]) != tuple(student_shape[1:]):
            name = type(self).__name__
            self.connector = regressor(name, student_shape, teacher_shape, relu=False)
        self.built = True

    def losses_of(
        self, teacher: Any, student: Any, training: bool = True, **context: Any
    ) -> LossOutput:
        if self.connector is not None:
            student = self.connector(student, training=training)
        return features.activation_boundary(teacher, student, margin=self.margin)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "margin": self.margin}
