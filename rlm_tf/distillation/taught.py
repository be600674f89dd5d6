"""Strategies of which a part learns from the teacher alone, before the student."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_range, check_running
from rlm_tf.distillation.precision import single_precision
from rlm_tf.distillation.regressor import Shape
from rlm_tf.distillation.strategy import Strategy
from rlm_tf.objectives import distillation
from rlm_tf.objectives import feature_distillation as features
from rlm_tf.objectives.divergences import unit
from rlm_tf.typing import LossOutput

# Slope of what is below 0.
_SLOPE = 0.1


class Views(NamedTuple):
    """What both networks give of R further views of a batch.

    Attributes:
        teacher: Features `[B, R, ...]`.
        student: Features `[B, R, ...]`.
        teacher_logits: `[B, R, K]`.
        student_logits: `[B, R, K]`.
    """

    teacher: tf.Tensor
    student: tf.Tensor
    teacher_logits: tf.Tensor
    student_logits: tf.Tensor


class TaughtStrategy(Strategy):
    """Base class: a part of it is trained first, on what the teacher gives.

    `rlm_tf.models.Distillation.prepare` does that. In `fit()` the part stays as it is.
    A subclass makes it in `build`, names it in `teacher_part`, and computes its loss in
    `teacher_loss`.
    """

    # Passes over the data that the part is trained for, as published.
    preparing_epochs = 30

    def build(self, teacher_shape: Any, student_shape: Any) -> None:
        """Makes the flag that files keep; of subclasses, their parts, too."""
        # A weight, so that what was prepared once is prepared when it is loaded.
        self.prepared = self.add_weight(
            name="prepared", shape=(), initializer="zeros", trainable=False
        )
        self.teacher_part.trainable = False
        self.built = True

    @property
    def is_prepared(self) -> bool:
        """Whether that part has learnt; outside of graphs."""
        return bool(tf.convert_to_tensor(self.prepared) > 0)

    def compute_loss(
        self, teacher_outputs: Any, student_outputs: Any, **kwargs: Any
    ) -> tf.Tensor:
        """Returns the mean over the batch, for Keras' `Distiller`.

        Raises:
            ValueError: If its part was not prepared; in a graph an
                `InvalidArgumentError`.
        """
        loss = super().compute_loss(teacher_outputs, student_outputs, **kwargs)
        known = check_running(
            self.prepared > 0,
            f"{type(self).__name__}: a part learns from the teacher alone, before: "
            "rlm_tf.models.Distillation.prepare(batches); times prepared must be 1",
            self.prepared,
        )
        with tf.control_dependencies(known):
            return tf.identity(loss)

    @property
    def teacher_part(self) -> keras.Layer:
        """What learns from the teacher alone."""
        raise NotImplementedError

    def teacher_loss(self, teacher: tf.Tensor, views: tf.Tensor | None) -> tf.Tensor:
        """Returns the scalar loss of that part.

        Args:
            teacher: The teacher's features, `[B, ...]`.
            views: Of further views, `[B, R, ...]`, where the strategy has such.
        """
        raise NotImplementedError


@keras.saving.register_keras_serializable("rlm_tf")
class FactorTransfer(TaughtStrategy):
    """FT (Kim, Park and Kwak 2018); see `objectives.feature_distillation.factor`.

    A paraphraser, which learns to make the teacher's maps of a few channels, its
    factors, has those of the teacher; a translator, which is trained with the student,
    makes them of the student's maps.

    Args:
        teacher_layer_name: See `Strategy`.
        student_layer_name: See `Strategy`.
        share: Factors for each channel of the teacher.
        **kwargs: Of `keras.Layer`.

    Raises:
        ValueError: If the share is not in (0, 1], or features are no maps.
    """

    def __init__(
        self,
        teacher_layer_name: str | None = None,
        student_layer_name: str | None = None,
        *,
        share: float = 0.5,
        **kwargs: Any,
    ) -> None:
        super().__init__(teacher_layer_name, student_layer_name, **kwargs)
        check_range(type(self).__name__, 1e-6, 1.0, share=share)
        self.share = share

    def build(self, teacher_shape: Shape, student_shape: Shape) -> None:
        for role, shape in (("teacher", teacher_shape), ("student", student_shape)):
            if len(shape) != 4 or shape[-1] is None:
                raise ValueError(
                    f"{type(self).__name__}: features of the {role} must be maps "
                    f"[B, H, W, C], found shape {list(shape)}."
                )
        own, channels = int(student_shape[-1] or 0), int(teacher_shape[-1] or 0)
        factors = max(int(channels * self.share), 1)
        encoder = _convolutions("encoder", channels, (channels, factors, factors))
        decoder = _convolutions("decoder", factors, (factors, channels, channels))
        with single_precision():
            both = keras.Sequential([encoder, decoder], name="paraphraser")
        self.paraphraser = both
        self.paraphraser.build((None, None, None, channels))
        self.translator = _convolutions("translator", own, (own, factors, factors))
        super().build(teacher_shape, student_shape)

    @property
    def teacher_part(self) -> keras.Layer:
        return self.paraphraser

    def teacher_loss(self, teacher: tf.Tensor, views: tf.Tensor | None) -> tf.Tensor:
        """Returns the mean squared error of maps made of their factors."""
        return tf.reduce_mean((self.paraphraser(teacher) - teacher) ** 2)

    def losses_of(self, teacher: Any, student: Any, **context: Any) -> LossOutput:
        factors = self.paraphraser.layers[0](teacher)
        return features.factor(factors, self.translator(student))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "share": self.share}


@keras.saving.register_keras_serializable("rlm_tf")
class SelfSupervised(TaughtStrategy):
    """SSKD (Xu et al. 2020), of images and their rotations by 90, 180 and 270 degrees.

    See `objectives.feature_distillation.self_supervised`: the student is to find a
    rotated image as similar to the others of the batch as the teacher does. Both have a
    head of two dense layers over their features; that of the teacher learns first to
    tell which image a rotated one is of. Besides, `rotated_weight` times the `kd` of
    rotated images.

    Each network runs over the batch and its rotations at once, four times as many
    images, also where its layers normalise a batch. The published weights, 1, 1, 2.7
    and 10, are those of cross-entropy, KD, rotated KD and this: a coefficient of 10 and
    a `rotated_weight` of 0.27.

    Args:
        teacher_layer_name: See `Strategy`. Of vectors `[B, D]`.
        student_layer_name: See `Strategy`.
        temperature: Of similarities; as published, that of the first stage is 1.
        keep: See `self_supervised`.
        rotated_weight: Of the KD of rotated images; 0: none.
        rotated_temperature: Of that.
        width: Of the heads; None: that of the features.
        **kwargs: Of `keras.Layer`.

    Raises:
        ValueError: If a number is out of range, or features are no vectors.
    """

    needs = ("views",)
    across = True
    preparing_epochs = 60

    def __init__(
        self,
        teacher_layer_name: str | None = None,
        student_layer_name: str | None = None,
        *,
        temperature: float = 0.5,
        keep: float = 0.75,
        rotated_weight: float = 0.27,
        rotated_temperature: float = 4.0,
        width: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(teacher_layer_name, student_layer_name, **kwargs)
        name = type(self).__name__
        check_range(
            name,
            1e-6,
            math.inf,
            temperature=temperature,
            rotated_temperature=rotated_temperature,
        )
        check_range(name, 0.0, 1.0, keep=keep)
        check_range(name, 0.0, math.inf, rotated_weight=rotated_weight)
        if width is not None:
            check_integer(name, "width", width, 1)
        self.temperature = temperature
        self.keep = keep
        self.rotated_weight = rotated_weight
        self.rotated_temperature = rotated_temperature
        self.width = width

    def build(self, teacher_shape: Shape, student_shape: Shape) -> None:
        name = type(self).__name__
        self.of_teacher = self._head(name, "of_teacher", teacher_shape)
        self.of_student = self._head(name, "of_student", student_shape)
        super().build(teacher_shape, student_shape)

    @single_precision()
    def _head(self, name: str, role: str, shape: Shape) -> keras.Sequential:
        if len(shape) != 2 or shape[-1] is None:
            raise ValueError(
                f"{name}: features must be vectors [B, D], found shape {list(shape)}."
            )
        width = self.width or int(shape[-1])
        layers = [keras.Input([shape[-1]]), keras.layers.Dense(width, "relu")]
        return keras.Sequential([*layers, keras.layers.Dense(width)], name=role)

    @property
    def teacher_part(self) -> keras.Layer:
        return self.of_teacher

    def teacher_loss(self, teacher: tf.Tensor, views: tf.Tensor | None) -> tf.Tensor:
        """Returns the cross-entropy, nats, of telling which image a view is of."""
        assert views is not None
        plain = unit(self.of_teacher(teacher), axis=1)
        seen = unit(_by_view(self.of_teacher, views), axis=2)
        cosines = tf.einsum("brd,cd->brc", seen, plain)
        images, number = tf.shape(seen)[0], tf.shape(seen)[1]
        own = tf.repeat(tf.range(images)[:, tf.newaxis], number, axis=1)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(own, cosines)
        return tf.reduce_mean(loss)

    def losses_of(
        self, teacher: Any, student: Any, training: bool = True, **context: Any
    ) -> LossOutput:
        views: Views = context["views"]
        found = features.self_supervised(
            self.of_teacher(teacher),
            _by_view(self.of_teacher, views.teacher),
            self.of_student(student),
            _by_view(self.of_student, views.student),
            temperature=self.temperature,
            keep=self.keep,
        )
        images = tf.shape(teacher)[0]
        kept = tf.reshape(found.extra.kept * found.loss, [images, -1])
        # So that the mean over images is that over what is kept.
        number = tf.maximum(tf.reduce_sum(found.extra.kept), 1)
        loss = tf.reduce_sum(kept, axis=1) * tf.cast(images, kept.dtype) / number
        if self.rotated_weight:
            rotated = distillation.kd(
                views.teacher_logits,
                views.student_logits,
                temperature=self.rotated_temperature,
            ).loss
            loss += self.rotated_weight * tf.reduce_mean(rotated, axis=1)
        return LossOutput(loss, found.extra)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "temperature": self.temperature,
            "keep": self.keep,
            "rotated_weight": self.rotated_weight,
            "rotated_temperature": self.rotated_temperature,
            "width": self.width,
        }


def _by_view(head: keras.Layer, views: tf.Tensor) -> tf.Tensor:
    """Returns a head's vectors `[B, R, D]` of features `[B, R, F]`."""
    flat = head(tf.reshape(views, [-1, views.shape[-1]]))
    return tf.reshape(flat, [*tf.unstack(tf.shape(views)[:2]), flat.shape[-1]])


@single_precision()
def _convolutions(name: str, channels: int, widths: tuple[int, ...]) -> keras.Layer:
    """Returns convolutions 3 x 3, each with a leaky ReLU behind it, built."""
    layers: list[Any] = [keras.Input([None, None, channels])]
    for width in widths:
        layers.append(keras.layers.Conv2D(width, 3, padding="same"))
        layers.append(keras.layers.LeakyReLU(negative_slope=_SLOPE))
    return keras.Sequential(layers, name=name)
