"""Epochs that are no passes: nothing is left out, resumed anywhere."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.data import LabelledTexts, Looks, Segments, encoder_vocabulary
from rlm_tf.data.labelled.labelled_batches import LabelledBatches
from rlm_tf.training import ResumableBatches

_TEXT = "some words of a text\nand of another one\n\n" * 12
_VOCABULARY = encoder_vocabulary(_TEXT, 290)


def _all(dataset):
    return [*dataset.as_numpy_iterator()]


@pytest.mark.parametrize("steps", [1, 4, 7, 20])
def test_epochs_follow_one_another(steps):
    segments = Segments(_TEXT, _VOCABULARY, 10, 5, seed=1)
    passes = [batch for p in range(12) for batch in _all(segments.dataset(p))]
    looks = Looks(segments, steps)
    for epoch in range(3):
        expected = passes[epoch * steps : (epoch + 1) * steps]
        found = _all(looks.dataset(epoch))
        np.testing.assert_array_equal(found, expected)
        if steps > 2:
            np.testing.assert_array_equal(_all(looks.dataset(epoch, 2)), expected[2:])
    data = ResumableBatches(looks)
    assert data.steps == steps
    data.seek(2, steps - 1)
    np.testing.assert_array_equal(_all(data.dataset), passes[3 * steps - 1 : 3 * steps])


def test_of_labelled_texts():
    labelled = LabelledTexts(["a", "b", "c"], np.array([0, 1, 0], np.int32), ("x", "y"))
    batches = LabelledBatches(labelled, _VOCABULARY, 8, 2)
    found = _all(Looks(batches, 5).dataset())
    assert len(found) == 5 and all(labels.shape == (2,) for _, labels in found)
    with pytest.raises(ValueError, match="`steps` must be an integer >= 1, found 0"):
        Looks(batches, 0)
