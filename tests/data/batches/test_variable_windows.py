"""Windows of random lengths: every token once, other ends in each epoch, resumes."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import VariableWindows, contiguous_batches
from rlm_tf.models import AWDLanguageModel
from rlm_tf.training import ResumableBatches

_TEXT = np.arange(1, 1003)


def _windows(**options):
    return VariableWindows(_TEXT, 3, 20, prefix=0, **{"seed": 1, **options})


def test_every_token_is_scored_once_and_rows_read_on():
    windows = _windows()
    rows = [[], [], []]
    scored = []
    previous = None
    for step, ((tokens, start), targets, weights) in enumerate(windows.dataset(2)):
        np.testing.assert_array_equal(start, [int(step == 0)] * 3)
        np.testing.assert_array_equal(tokens[:, 1:], targets[:, :-1])
        if previous is not None:
            np.testing.assert_array_equal(tokens[:, 0], previous)
        previous = targets[:, -1]
        scored += targets[weights > 0].numpy().tolist()
        for row, values in zip(rows, targets.numpy(), strict=True):
            row.extend(values)
    assert step + 1 == windows.steps
    assert sorted(scored) == _TEXT.tolist() and windows.num_targets == len(_TEXT)
    # The rows are those of windows of one length.
    one = contiguous_batches(_TEXT, 3, 334, prefix=0).element(0)
    np.testing.assert_array_equal(rows, one.next_tokens)


def test_lengths_are_those_asked_for():
    windows = VariableWindows(np.zeros(400_000, int), 2, 70, prefix=0)
    lengths = windows.lengths(0)
    assert lengths.sum() == 200_000
    long = lengths[lengths > 50]
    assert np.mean(lengths <= 50) == pytest.approx(0.05, abs=0.02)
    # Draws are cut to whole numbers.
    assert long.mean() == pytest.approx(69.5, abs=0.5)
    assert long.std() == pytest.approx(5.0, abs=0.4)
    assert lengths[lengths <= 50].mean() == pytest.approx(34.5, abs=2.0)
    few = _windows(least=15, most=18)
    assert set(few.lengths(0)[np.argsort(few.lengths(0))][1:]) <= {15, 16, 17, 18}


def test_orders_are_a_function_of_seed_and_epoch():
    windows = _windows()
    first = windows.lengths(0)
    np.testing.assert_array_equal(first, _windows().lengths(0))
    assert np.any(first != windows.lengths(1))
    np.testing.assert_array_equal(np.sort(first), np.sort(windows.lengths(1)))
    assert np.any(first != _windows(seed=2).lengths(0)[: len(first)])


def test_an_epoch_goes_on_in_its_middle():
    windows = _windows()
    data = ResumableBatches(windows)
    data.seek(3, 5)
    expected = list(windows.dataset(3))[5:]
    for found, wanted in zip(data.dataset, expected, strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, found, wanted)


def test_a_step_counts_as_much_as_its_window_is_long(rng):
    """Gradient descent of a window of 5 with base 20 moves a quarter as far."""
    tokens, targets = rng.integers(7, size=(2, 2, 5)).astype(np.int32)
    moves = []
    for base in (None, 20):
        model = AWDLanguageModel(
            7,
            embedding_width=3,
            units=(4, 3),
            mixture_components=1,
            base_window=base,
            clip_norm=0.1,
            jit_loop=False,
        )
        model.compile(keras.optimizers.SGD(1.0))
        before = model.get_weights()
        model.train_on_batch(tokens, targets)
        moves.append([a - b for a, b in zip(model.get_weights(), before, strict=True)])
    for whole, part in zip(*moves, strict=True):
        np.testing.assert_allclose(part, whole / 4, rtol=1e-3, atol=1e-7)


def test_mistakes():
    with pytest.raises(ValueError, match="`most` must be an integer >= 5"):
        _windows(most=4)
    with pytest.raises(ValueError, match=r"`short_share` must lie in \[0, 1\]"):
        _windows(short_share=2.0)
    with pytest.raises(ValueError, match="`base_window` must be an integer >= 1"):
        AWDLanguageModel(
            7, embedding_width=3, units=(4,), mixture_components=1, base_window=0
        )
