"""Contiguous batches against a token-by-token reference."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_tf.data import contiguous_batches, load_corpus
from tests.references.contiguous_batches import naive_batches

_sizes = {
    "tokens": st.lists(st.integers(1, 9), min_size=1, max_size=40),
    "batch_size": st.integers(1, 9),
    "window": st.integers(1, 9),
}


@given(**_sizes)
@settings(deadline=None, max_examples=200)
def test_elements_match_the_reference(tokens, batch_size, window) -> None:
    batches = contiguous_batches(np.array(tokens), batch_size, window, prefix=0)
    expected = np.array(naive_batches(tokens, batch_size, window, 0))
    assert batches.steps == len(expected) and batches.num_targets == len(tokens)
    for step in range(batches.steps):
        (inputs, start), targets, weights = batches.element(step)
        weighted = expected[step, :, :, 2]
        np.testing.assert_array_equal(weights, weighted)
        np.testing.assert_array_equal(targets * weighted, expected[step, :, :, 1])
        np.testing.assert_array_equal(
            inputs * weighted, expected[step, :, :, 0] * weighted
        )
        np.testing.assert_array_equal(start, np.full(batch_size, step == 0))


@given(**_sizes)
@settings(deadline=None, max_examples=100)
def test_every_token_is_scored_once_in_order(tokens, batch_size, window) -> None:
    batches = contiguous_batches(np.array(tokens), batch_size, window, prefix=0)
    elements = [batches.element(s) for s in range(batches.steps)]
    targets = np.concatenate([e.next_tokens for e in elements], axis=1)
    weights = np.concatenate([e.weights for e in elements], axis=1)
    assert targets[weights == 1].tolist() == tokens
    assert weights.sum() == len(tokens)


def test_rows_read_on_and_see_the_token_before_them() -> None:
    batches = contiguous_batches(np.arange(1, 13), 3, 2, prefix=0)
    (first, _), _, _ = batches.element(0)
    (second, start), targets, _ = batches.element(1)
    np.testing.assert_array_equal(first, [[0, 1], [4, 5], [8, 9]])
    np.testing.assert_array_equal(second, [[2, 3], [6, 7], [10, 11]])
    np.testing.assert_array_equal(targets, [[3, 4], [7, 8], [11, 12]])
    np.testing.assert_array_equal(start, [0, 0, 0])


def assert_equal_elements(found, expected) -> None:
    tf.nest.assert_same_structure(found, tuple(expected))
    for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_dataset_gives_the_elements_with_static_shapes() -> None:
    batches = contiguous_batches(np.arange(1, 24), 3, 4, prefix=0)
    dataset = batches.dataset()
    (tokens, start), targets, weights = dataset.element_spec
    assert tokens == targets == tf.TensorSpec([3, 4], tf.int32)
    assert start == tf.TensorSpec([3], tf.int32)
    assert weights == tf.TensorSpec([3, 4], tf.float32)
    assert int(dataset.cardinality()) == batches.steps == 2
    for step, element in enumerate(dataset):
        assert_equal_elements(element, batches.element(step))


def test_start_step_and_repeat_need_only_a_counter() -> None:
    batches = contiguous_batches(np.arange(1, 24), 2, 4, prefix=0)
    assert batches.steps == 3
    rest = list(batches.dataset(start_step=2))
    assert len(rest) == 1
    assert_equal_elements(rest[0], batches.element(2))
    assert list(batches.dataset(start_step=3)) == []
    for counter, element in zip(range(5, 12), batches.dataset(5, True), strict=False):
        assert_equal_elements(element, batches.element(counter % 3))


def test_transform_gets_epoch_and_step() -> None:
    batches = contiguous_batches(np.arange(1, 24), 2, 4, prefix=0)

    def note(element, epoch, step):
        (tokens, start), targets, weights = element
        return (
            (tokens * 0 + tf.cast(epoch * 10 + step, tf.int32), start),
            targets,
            weights,
        )

    seen = [int(e[0][0][0, 0]) for e in batches.dataset(1, transform=note, epoch=4)]
    assert seen == [41, 42]
    dataset = batches.dataset(5, repeat=True, transform=note, epoch=1)
    assert [int(e[0][0][0, 0]) for e in dataset.take(5)] == [22, 30, 31, 32, 40]


def test_mistakes_in_arguments() -> None:
    tokens = np.arange(5)
    with pytest.raises(ValueError, match="empty"):
        contiguous_batches(np.zeros(0, np.int32), 1, 1, prefix=0)
    for wrong, message in (
        (np.zeros(3), "integer ids, found dtype float64"),
        (np.zeros([2, 3], np.int32), r"a vector, found shape \[2, 3\]"),
        ([2**33 + 1], r"ids in \[0, 2147483648\), found"),
        ([-1, 3], "ids in .* found -1..3"),
    ):
        with pytest.raises(ValueError, match=f"`tokens` must be {message}"):
            contiguous_batches(wrong, 1, 1, prefix=0)
    for sizes in ((0, 1), (1.5, 1), ("4", 1), (True, 1)):
        with pytest.raises(ValueError, match="`batch_size` must be an integer >= 1"):
            contiguous_batches(tokens, *sizes, prefix=0)
    with pytest.raises(ValueError, match="`window` must be an integer >= 1, found 0"):
        contiguous_batches(tokens, 1, 0, prefix=0)
    for prefix in (-1, "<eos>"):
        with pytest.raises(ValueError, match="`prefix` must be an integer >= 0"):
            contiguous_batches(tokens, 1, 1, prefix=prefix)
    with pytest.raises(ValueError, match=r"ids in \[0, 4\), found 0..4"):
        contiguous_batches(tokens, 1, 1, prefix=0, vocabulary_size=4)
    with pytest.raises(
        ValueError, match=r"`prefix` must be an id in \[0, 5\), found 9"
    ):
        contiguous_batches(tokens, 1, 1, prefix=9, vocabulary_size=5)
    batches = contiguous_batches(tokens, 1, 2, prefix=0)
    with pytest.raises(IndexError, match=r"\[0, 3\), found 3"):
        batches.element(3)
    for step in (-1, 4):
        with pytest.raises(ValueError, match=rf"\[0, 3\], found {step}"):
            batches.dataset(step)


_REPLICAS = """
import numpy as np, tensorflow as tf
from rlm_tf.data import contiguous_batches
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2
)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
batches = contiguous_batches(np.arange(1, 30), 4, 3, prefix=0)
dataset = strategy.experimental_distribute_dataset(batches.dataset())
count = 0
for step, element in enumerate(dataset):
    for leaf, whole in zip(
        tf.nest.flatten(element), tf.nest.flatten(tuple(batches.element(step)))
    ):
        for replica, part in enumerate(strategy.experimental_local_results(leaf)):
            np.testing.assert_array_equal(part, whole[2 * replica : 2 * replica + 2])
            count += 1
assert count == batches.steps * 8, count
print("equal")
"""


@pytest.mark.landing
@pytest.mark.slow
def test_each_replica_keeps_its_own_rows() -> None:
    root = pathlib.Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", _REPLICAS], cwd=root, capture_output=True, text=True
    )
    assert done.stdout.strip() == "equal", done.stderr[-2000:]


def test_penn_treebank_valid_has_all_its_targets(data_dir) -> None:
    corpus = load_corpus("ptb", data_dir)
    eos = corpus.vocabulary.eos_id
    for batch_size, window in ((20, 35), (1, 100), (7, 33)):
        batches = contiguous_batches(corpus.valid, batch_size, window, prefix=eos)
        assert batches.num_targets == 73_760
        weights = sum(batches.element(s).weights.sum() for s in range(batches.steps))
        assert weights == 73_760
