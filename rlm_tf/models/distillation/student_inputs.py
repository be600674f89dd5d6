"""What a student takes: an example of its inputs, and what beside x is none."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

# Examples, and unknown sizes, of the batch that features' shapes are found on.
_ROWS, _UNKNOWN = 2, 8


def are_ids(student: keras.Model, second: Any) -> bool:
    """Returns whether what comes beside x is no input of the student's."""
    inputs = getattr(student, "inputs", None)
    if inputs is not None:
        return len(inputs) == 1
    # A subclassed model does not say; an integer an example is an id.
    given = tf.convert_to_tensor(second)
    return given.dtype.is_integer and given.shape.rank == 1


def zeros_for(name: str, model: keras.Model) -> Any:
    """Returns a batch of zeros that a model takes."""
    inputs = getattr(model, "inputs", None)
    if inputs is None:
        raise ValueError(
            f"{name}: {model.name} does not say what its inputs are; give `example=`."
        )
    batches = [
        np.zeros(
            [_ROWS, *(size or _UNKNOWN for size in given.shape[1:])],
            keras.backend.standardize_dtype(given.dtype),
        )
        for given in inputs
    ]
    return batches[0] if len(batches) == 1 else batches
