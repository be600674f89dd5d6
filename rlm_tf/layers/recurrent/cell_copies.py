"""Copies of a recurrent cell for the layers of a model."""

from __future__ import annotations

from typing import Any

import keras

from rlm_tf.layers.recurrent.recurrent_cell import RecurrentCell
from rlm_tf.seeds import Seeds


def copy_cell(
    cell: RecurrentCell, seeds: Seeds, dtype: keras.DTypePolicy
) -> RecurrentCell:
    """Returns a new cell with the settings of another, and seeds of its own.

    Args:
        cell: What to copy; its weights, if it has any, stay behind.
        seeds: Where all seeds come from: initialisers' and dropout's.
        dtype: Dtype policy of the copy.
    """
    config = keras.saving.serialize_keras_object(cell)
    changed = _changed(config, seeds, dtype)
    # Each layer has a cell of its own; a name would be said twice.
    changed["config"].pop("name", None)
    return keras.saving.deserialize_keras_object(changed)


def _changed(value: Any, seeds: Seeds, dtype: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_changed(item, seeds, dtype) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {}
    for key, item in value.items():
        if key == "shared_object_id":
            # While a file is loaded, Keras would take it for one of the file's, which
            # are addresses, too: now and then another object's.
            continue
        if key == "seed":
            changed[key] = seeds.next()
        elif key == "dtype":
            changed[key] = dtype
        else:
            changed[key] = _changed(item, seeds, dtype)
    return changed
