"""What callbacks remember, in a form that a checkpoint can hold."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

_ARRAY = "__array__"


def get_callback_state(callback: keras.callbacks.Callback) -> dict[str, Any]:
    """Returns a callback's state.

    That is what its `get_state()` returns: a dictionary of JSON values and arrays, in
    any nesting. Callbacks without that method, such as Keras' EarlyStopping, are
    described by their attributes that are numbers, strings, None, arrays, or lists or
    dictionaries of these, and not arguments of their constructor.
    """
    if hasattr(callback, "get_state"):
        return callback.get_state()
    # EarlyStopping flips the sign of its `min_delta` once in every process.
    given = {"params", *inspect.signature(type(callback)).parameters}
    return {
        name: value
        for name, value in vars(callback).items()
        if name not in given and _is_plain(value)
    }


def set_callback_state(
    callback: keras.callbacks.Callback, state: dict[str, Any]
) -> None:
    """Gives a callback the state that `get_callback_state` returned."""
    if hasattr(callback, "set_state"):
        callback.set_state(state)
        return
    for name, value in state.items():
        setattr(callback, name, value)


def split_arrays(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """Returns `value` with every array moved to `arrays` under a name of its own."""
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {_ARRAY: name}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {k: split_arrays(v, f"{name}/{k}", arrays) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [split_arrays(v, f"{name}/{i}", arrays) for i, v in enumerate(value)]
    return value


def join_arrays(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Undoes `split_arrays`."""
    if isinstance(value, dict):
        if _ARRAY in value:
            return arrays[value[_ARRAY]]
        return {k: join_arrays(v, arrays) for k, v in value.items()}
    if isinstance(value, list):
        return [join_arrays(v, arrays) for v in value]
    return value


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_plain(v) for v in value)
    if isinstance(value, dict):
        return all(isinstance(k, str) and _is_plain(v) for k, v in value.items())
    return value is None or isinstance(
        value, bool | int | float | str | np.ndarray | np.generic
    )
