"""Graphs with gradients of our own do not outlive their block."""

from __future__ import annotations

import gc
import weakref

import pytest
import tensorflow as tf

from rlm_tf.training import free_graphs_on_exit


@tf.custom_gradient
def _doubled(x):
    return 2.0 * x, lambda upstream: 2.0 * upstream


def _traced() -> tuple[tf.types.experimental.GenericFunction, weakref.ref]:
    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = _doubled(x)
        return tape.gradient(y, x)

    graph = gradient.get_concrete_function(tf.TensorSpec([], tf.float32)).graph
    return gradient, weakref.ref(graph)


def test_a_graph_goes_with_its_block():
    with free_graphs_on_exit():
        gradient, graph = _traced()
        assert gradient(tf.constant(3.0)) == 2.0
        del gradient
    assert graph() is None


def test_without_it_tensorflow_keeps_the_graph():
    """Should this fail after an update, TensorFlow has mended it."""
    gradient, graph = _traced()
    del gradient
    gc.collect()
    assert graph() is not None


def test_earlier_functions_keep_their_gradients():
    @tf.function
    def doubled(x):
        return _doubled(x)

    doubled.get_concrete_function(tf.TensorSpec([], tf.float32))
    with free_graphs_on_exit():
        _traced()
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = doubled(x)
    assert tape.gradient(y, x) == 2.0


def test_decorates_and_releases_after_errors():
    found = []

    @free_graphs_on_exit()
    def run():
        found.append(_traced()[1])
        raise ValueError("stopped")

    with pytest.raises(ValueError, match="stopped"):
        run()
    gc.collect()
    assert found[0]() is None
