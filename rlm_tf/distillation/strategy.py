"""What a strategy of distillation is: a Keras layer and a loss of Keras' Distiller."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.distillation.precision import single_precision
from rlm_tf.typing import LossOutput


class Strategy(keras.Layer, keras.distillation.DistillationLoss):
    """Base class: how one output of a student is to be like one of its teacher.

    A subclass computes losses by example in `losses_of`, and makes what it trains
    itself (projections) in `build(teacher_shape, student_shape)`. It trains in
    `rlm_tf.models.Distillation` and, if it needs outputs alone, in Keras' `Distiller`,
    which averages over the batch. It computes in float32 at least, also beside networks
    that compute in half precision.

    Args:
        teacher_layer_name: The teacher's layer; None: its output. In `Distillation` a
            path such as `stage2/block1/add`, in Keras' `Distiller` a top-level name.
        student_layer_name: The same of the student.
        **kwargs: Of `keras.Layer`.

    Raises:
        ValueError: If one layer is named and the other is not.
    """

    # What `Distillation` hands to `losses_of` besides: `labels`, `ids`, `inputs`.
    needs: tuple[str, ...] = ()
    # Whether a loss compares examples: then `Distillation` brings those of all
    # replicas together.
    across = False

    def __init__(
        self,
        teacher_layer_name: str | None = None,
        student_layer_name: str | None = None,
        **kwargs: Any,
    ) -> None:
        with single_precision():
            super().__init__(**kwargs)
        if (teacher_layer_name is None) != (student_layer_name is None):
            raise ValueError(
                f"{type(self).__name__}: name a layer of both or of none, found "
                f"teacher_layer_name={teacher_layer_name!r} and "
                f"student_layer_name={student_layer_name!r}."
            )
        self.teacher_layer_name = teacher_layer_name
        self.student_layer_name = student_layer_name

    def losses_of(self, teacher: Any, student: Any, **context: Any) -> LossOutput:
        """Returns the loss of each example, nats or as the method has it.

        Args:
            teacher: The teacher's features or logits; no gradient reaches them.
            student: The student's.
            **context: What `needs` names, and `training`.
        """
        raise NotImplementedError

    def build(self, teacher_shape: Any, student_shape: Any) -> None:
        """Makes what is trained; nothing by default."""
        self.built = True

    def call(
        self, teacher: Any, student: Any, training: bool = True, **context: Any
    ) -> tf.Tensor:
        """Returns the loss of each example; arguments as of `losses_of`."""
        return self.losses_of(teacher, student, training=training, **context).loss

    # === Of keras.distillation ===

    def compute_loss(
        self, teacher_outputs: Any, student_outputs: Any, **kwargs: Any
    ) -> tf.Tensor:
        """Returns the mean over the batch, for Keras' `Distiller`."""
        del kwargs
        self._check_outputs_are_enough()
        loss = self(teacher_outputs, student_outputs, training=True)
        # Of nothing, as in a batch of one of some methods, the mean is 0.
        size = tf.cast(tf.maximum(tf.size(loss), 1), loss.dtype)
        return tf.reduce_sum(loss) / size

    def validate_outputs(self, teacher_outputs: Any, student_outputs: Any) -> None:
        """Leaves shapes to the loss, which names what does not fit."""

    def validate_model_compatibility(self, teacher: Any, student: Any) -> None:
        """Makes what is trained, so that files of a `Distiller` hold its weights.

        Raises:
            ValueError: If outputs are not enough, or a layer is not there.
        """
        self._check_outputs_are_enough()
        shapes = [
            _shape_of(type(self).__name__, model, name)
            for model, name in (
                (teacher, self.teacher_layer_name),
                (student, self.student_layer_name),
            )
        ]
        if not self.built and None not in shapes:
            self.build(*shapes)

    def _check_outputs_are_enough(self) -> None:
        if self.needs:
            raise ValueError(
                f"{type(self).__name__} needs {' and '.join(self.needs)}, which Keras' "
                "Distiller does not hand on; train it in rlm_tf.models.Distillation."
            )

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "teacher_layer_name": self.teacher_layer_name,
            "student_layer_name": self.student_layer_name,
        }


def _shape_of(function: str, model: Any, name: str | None) -> Any:
    """Returns the shape of a functional model's output or layer, or None."""
    if getattr(model, "inputs", None) is None:
        return None
    if name is None:
        return model.output_shape
    names = [layer.name for layer in model.layers]
    if name not in names:
        raise ValueError(
            f"{function}: {model.name} has no layer {name!r} at its top level; there "
            f"are {', '.join(names[:8])}. Paths of nested layers are for "
            "rlm_tf.models.Distillation."
        )
    return tuple(model.get_layer(name).output.shape)
