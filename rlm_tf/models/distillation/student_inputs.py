"""What a student takes: an example of its inputs, and what beside x is none."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.restricted.restricted_model import RestrictedModel

# Examples, and unknown sizes, of the batch that features' shapes are found on.
_ROWS, _UNKNOWN = 2, 8


def check_classifier(name: str, role: str, model: Any) -> None:
    """Checks that teachers or students of classes are given, none of words.

    Raises:
        ValueError: If it is no Keras model, or a language model, restricted model or
            stored predictions, which `LanguageDistillation` takes.
    """
    if not isinstance(model, keras.layers.Layer):
        kind = type(model).__name__
    elif isinstance(model, RestrictedModel) or any(
        hasattr(model, each) for each in ("zero_states", "hidden_features")
    ):
        kind = f"the language model {type(model).__name__}"
        if isinstance(model, RestrictedModel):
            kind = f"the restricted model {type(model).__name__}"
    else:
        return
    raise ValueError(
        f"{name}: `{role}` must be a Keras classifier, found {kind}; language models, "
        "their restricted models and TeacherPredictions are for LanguageDistillation."
    )


def inputs_and_ids(
    model: keras.Model, x: Any, *, are_needed: bool
) -> tuple[Any, Any | None]:
    """Returns what a model takes of a batch, and ids of examples beside it, or None.

    Args:
        model: The model.
        x: Its inputs, or `(inputs, ids)`.
        are_needed: Whether somebody asks for ids, for models that do not say what they
            take.
    """
    if not (isinstance(x, tuple | list) and len(x) == 2):
        return x, None
    inputs = getattr(model, "inputs", None)
    if inputs is not None and len(inputs) > 1:
        has_ids = isinstance(x[0], tuple | list | dict)
    elif inputs is not None:
        has_ids = True
    else:
        # A subclassed model does not say; an integer an example is an id.
        given = None if tf.nest.is_nested(x[1]) else tf.convert_to_tensor(x[1])
        has_ids = are_needed or (
            given is not None and given.dtype.is_integer and given.shape.rank == 1
        )
    return (x[0], tf.convert_to_tensor(x[1])) if has_ids else (x, None)


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
