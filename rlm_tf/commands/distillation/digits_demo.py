"""Digits, a teacher that learns them, and a small student: what `distil` shows."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from rlm_tf.data import ImageBatches, digits
from rlm_tf.models import StudentOrientedTeacher
from rlm_tf.models.image import wide_resnet
from rlm_tf.training import ResumableBatches

_TRAIN, _VALID = 300, 200
_TEACHER_EPOCHS = 25
_SHAPE = (8, 8, 1)


def prepare(seed: int) -> tuple[keras.Model, keras.Model, dict[str, Any]]:
    """Returns a trained teacher, an untrained student, and what both learn from.

    Args:
        seed: Of which digits are trained on, of weights and of augmentation.
    """
    data = digits()
    order = np.random.default_rng(seed).permutation(len(data.labels))
    train, valid, test = (
        data.part(rows) for rows in np.split(order, [_TRAIN, _TRAIN + _VALID])
    )
    held = {
        name: (part.images.astype(np.float32) / 255, part.labels)
        for name, part in (("valid", valid), ("test", test))
    }
    keras.utils.set_random_seed(seed)
    teacher, student = (
        wide_resnet(16, widen, len(data.names), input_shape=_SHAPE) for widen in (2, 1)
    )
    batches = ResumableBatches(ImageBatches(train, 64, seed=seed, shift=1))
    model = StudentOrientedTeacher(
        teacher, lipschitz=0.0, consistency=0.0, epochs=_TEACHER_EPOCHS
    )
    rate = keras.optimizers.schedules.CosineDecay(
        0.005, _TEACHER_EPOCHS * batches.steps
    )
    model.compile(keras.optimizers.Adam(rate))
    print(f"the teacher learns {_TRAIN} digits", flush=True)
    model.fit(
        batches.dataset,
        epochs=_TEACHER_EPOCHS,
        verbose=0,
        shuffle=False,
        callbacks=[batches.follow_epochs()],
    )
    return teacher, student, {"train": batches, **held}
