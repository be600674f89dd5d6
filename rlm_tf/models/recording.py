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
def recording(
    layers: Mapping[str, keras.Layer], method: str = "call"
) -> Iterator[dict[str, Any]]:
    """Gives a dictionary that has the outputs of layers by name, once they have run.

    It works for layers of nested and of subclassed models, which no Keras model of
    intermediate outputs reaches, and runs nothing twice. Of a layer that is called
    several times it has the last output. Threads, such as those of replicas, have
    their own records.

    Args:
        layers: By the names of the record.
        method: Whose results are recorded.
    """
    found: dict[str, Any] = {}
    names = {id(layer): name for name, layer in layers.items()}
    records = _ACTIVE.__dict__.setdefault("records", [])
    with _LOCK:
        for layer in layers.values():
            _attach(layer, method)
    records.append((names, method, found))
    try:
        yield found
    finally:
        records.remove((names, method, found))
        with _LOCK:
            for layer in layers.values():
                _detach(layer, method)


def _attach(layer: keras.Layer, method: str) -> None:
    """Has a layer tell its outputs; how many ask for that is counted."""
    call = getattr(layer, method)
    users = getattr(call, "_users", None)
    if users is not None:
        users[0] += 1
        return

    @functools.wraps(call)
    def told(*args: Any, **kwargs: Any) -> Any:
        outputs = call(*args, **kwargs)
        for names, asked, found in _ACTIVE.__dict__.get("records", ()):
            if asked == method and id(layer) in names:
                found[names[id(layer)]] = outputs
        return outputs

    told._users = [1]  # type: ignore[attr-defined]
    object.__setattr__(layer, method, told)


def _detach(layer: keras.Layer, method: str) -> None:
    users = getattr(layer, method)._users
    users[0] -= 1
    if not users[0]:
        object.__delattr__(layer, method)
