"""The classifier in what trains it."""

from __future__ import annotations

import keras

from rlm_tf.models.distillation.distillation import Distillation
from rlm_tf.models.distillation.student_oriented_teacher import StudentOrientedTeacher


def classifier_of(model: keras.Model) -> keras.Model:
    """Returns the student of a `Distillation`, a teacher's model, or what is given."""
    while isinstance(model, Distillation | StudentOrientedTeacher):
        model = model.student if isinstance(model, Distillation) else model.model
    return model
