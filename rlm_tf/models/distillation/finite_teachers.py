"""Teachers whose training has diverged."""

from __future__ import annotations

import keras
import numpy as np


def check_finite_teacher(name: str, teacher: keras.Model) -> None:
    """Raises ValueError if a weight of a teacher is no finite number.

    Args:
        name: Of whom it teaches; the message begins with it.
        teacher: The model.
    """
    for weight in teacher.weights:
        value = weight.numpy()
        if np.issubdtype(value.dtype, np.integer) or value.dtype == bool:
            continue
        if not np.isfinite(np.asarray(value, np.float32)).all():
            raise ValueError(
                f"{name}: the teacher `{teacher.name}` has a weight that is no finite "
                f"number, {weight.path}."
            )
