"""What layers inside a model give, recorded while the model runs."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import keras

_LOCK = threading.Lock()
_ACTIVE = threading.local()


@contextmanager
def recording(layers: Mapping[str, keras.Layer]) -> Iterator[dict[str, Any]]:
    """Gives a dictionary that has the outputs of layers by name, once they have run.

    It works for layers of nested and of subclassed models, which no Keras model of
    intermediate outputs reaches, and runs nothing twice. Of a layer that is called
    several times it has the last output. Threads, such as those of replicas, have
    their own records.

    Args:
        layers: By the names of the record.
    """
    found: dict[str, Any] = {}
    names = {id(layer): name for name, layer in layers.items()}
    records = _ACTIVE.__dict__.setdefault("records", [])
    with _LOCK:
        for layer in layers.values():
            _attach(layer)
    records.append((names, found))
    try:
        yield found
    finally:
        records.remove((names, found))
        with _LOCK:
            for layer in layers.values():
                _detach(layer)


def _attach(layer: keras.Layer) -> None:
    """Has a layer tell its outputs; how many ask for that is counted."""
    users = getattr(layer.call, "_users", None)
    if users is not None:
        users[0] += 1
        return
    call = layer.call

    @functools.wraps(call)
    def told(*args: Any, **kwargs: Any) -> Any:
        outputs = call(*args, **kwargs)
        for names, found in _ACTIVE.__dict__.get("records", ()):
            if id(layer) in names:
                found[names[id(layer)]] = outputs
        return outputs

    told._users = [1]  # type: ignore[attr-defined]
    object.__setattr__(layer, "call", told)


def _detach(layer: keras.Layer) -> None:
    users = layer.call._users
    users[0] -= 1
    if not users[0]:
        object.__delattr__(layer, "call")
