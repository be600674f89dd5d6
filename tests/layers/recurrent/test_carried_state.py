"""State from window to window: start flags, batch sizes, XLA, checkpoints."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.layers import CarriedState


def stored(rows):
    state = CarriedState([2], "float32", name="test")
    state.write([tf.reshape(tf.range(1.0, 2 * rows + 1), [rows, 2])])
    return state


@pytest.mark.parametrize("jit", [None, True])
def test_flagged_rows_start_from_zero(jit):
    state = stored(3)
    read = tf.function(lambda start: state.read(start), jit_compile=jit)
    (rows,) = read(tf.constant([0, 1, 0]))
    np.testing.assert_array_equal(rows, [[1, 2], [0, 0], [5, 6]])


def test_batch_size_changes_where_every_row_starts():
    state = stored(3)
    for size in (5, 2):
        (rows,) = state.read(tf.ones([size], tf.int32))
        np.testing.assert_array_equal(rows, np.zeros((size, 2)))
        state.write([rows + size])
        np.testing.assert_array_equal(state.values[0], np.full((size, 2), size))


@pytest.mark.parametrize("mode", ["eager", "known size", "unknown size"])
def test_batch_size_may_not_change_within_streams(mode):
    state = stored(3)
    size = None if mode == "unknown size" else 5
    read = state.read
    if mode != "eager":
        read = tf.function(read, input_signature=[tf.TensorSpec([size], tf.int32)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="batch size changes"):
        read(tf.constant([1, 1, 1, 1, 0]))


def test_a_first_window_must_start_its_streams():
    state = CarriedState([2], "float32", name="test")
    with pytest.raises(tf.errors.InvalidArgumentError, match="start flag 0"):
        state.read(tf.constant([0]))
    state.reset(2)
    np.testing.assert_array_equal(state.read(tf.zeros([2], "int32"))[0], [[0, 0]] * 2)


def test_compiled_rows_without_a_past_are_not_numbers():
    state = stored(3)
    read = tf.function(lambda start: state.read(start), jit_compile=True)
    (rows,) = read(tf.constant([1, 1, 1, 0]))
    np.testing.assert_array_equal(np.isnan(rows), [[False] * 2] * 3 + [[True] * 2])


def test_compiled_step_gets_room_for_its_batch_while_it_is_traced():
    state = CarriedState([2], "float32", name="test")

    @tf.function(jit_compile=True)
    def step(start):
        (rows,) = state.read(start)
        state.write([rows + 1.0])

    step(tf.ones([4], tf.int32))
    step(tf.constant([0, 0, 1, 0]))
    np.testing.assert_array_equal(state.values[0][:, 0], [2, 2, 1, 2])


def test_checkpoint_keeps_rows_and_their_number(tmp_path):
    path = tf.train.Checkpoint(state=stored(3)).write(str(tmp_path / "state"))
    other = CarriedState([2], "float32", name="test")
    tf.train.Checkpoint(state=other).read(path).assert_consumed()
    (rows,) = other.read(tf.constant([0, 0, 0]))
    np.testing.assert_array_equal(rows, [[1, 2], [3, 4], [5, 6]])


def test_no_gradient_flows_into_the_past():
    state = stored(1)
    x = tf.Variable([[1.0, 2.0]])
    with tf.GradientTape() as tape:
        state.write([x * 2.0])
        (rows,) = state.read(tf.zeros([1], tf.int32))
        loss = tf.reduce_sum(rows)
    assert tape.gradient(loss, x) is None


def test_tracing_for_another_batch_size_ends_the_streams():
    state = stored(3)
    read = tf.function(lambda start: state.read(start))
    read.get_concrete_function(tf.TensorSpec([1], tf.int32))
    with pytest.raises(tf.errors.InvalidArgumentError, match="batch size changes"):
        state.read(tf.zeros([3], tf.int32))
