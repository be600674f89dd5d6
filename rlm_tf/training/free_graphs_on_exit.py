"""Memory of a process that trains many models, one after another."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

import keras
from tensorflow.python.framework import ops


@contextlib.contextmanager
def free_graphs_on_exit() -> Iterator[None]:
    """Frees the graphs that are traced inside, at the end; also a decorator.

    TensorFlow keeps the gradient of every use of `tf.custom_gradient` in a graph, and
    with it the whole graph, for as long as the process lives: tens of megabytes a
    model. `keras.backend.clear_session()`, which is called here as well, leaves them.

    What was built inside is not to be trained on afterwards: functions that are traced
    already go on, but TensorFlow no longer finds the gradients to trace others. Let go
    of models inside, too; what is still referred to stays.

        for seed in range(100):
            with free_graphs_on_exit():
                model = build(seed)
                model.fit(batches)
                del model

    `released_graphs` is its old name.
    """
    known = set(_gradients())
    try:
        yield
    finally:
        registry = _gradients()
        for name in set(registry) - known:
            if name.startswith("CustomGradient-"):
                del registry[name]
        # It would collect, too.
        keras.backend.clear_session(free_memory=False)
        gc.collect()


released_graphs = free_graphs_on_exit


def _gradients() -> dict[str, Any]:
    """Returns the table of gradients; TensorFlow has no public way to it."""
    return getattr(ops.gradient_registry, "_registry", {})
