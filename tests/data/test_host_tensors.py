"""Data of sources are captured by graphs, and not copied into them."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import (
    DocumentBatches,
    ImageBatches,
    LabelledImages,
    SentenceBatches,
    VariableWindows,
)
from rlm_tf.layers import WordDeletion
from rlm_tf.training import ResumableBatches

_N, _T = 300, 40
_RNG = np.random.default_rng(0)
_TOKENS = _RNG.integers(2, 9, [_N, _T])
_LABELS = _RNG.integers(0, 2, _N)
_STREAM = _TOKENS.ravel()
_IMAGES = LabelledImages(np.uint8(_TOKENS[..., None, None]), _LABELS, ("a", "b"))


def _documents():
    return DocumentBatches(_TOKENS, _LABELS, 8)


_SOURCES = {
    "documents": _documents,
    "images": lambda: ImageBatches(_IMAGES, 8),
    "sentences": lambda: SentenceBatches(_STREAM, 2, 8, 50),
    "windows": lambda: VariableWindows(_STREAM, 4, 10, prefix=0),
}


@pytest.mark.parametrize("name", _SOURCES)
def test_a_graph_of_an_epoch_holds_no_data(name):
    source = _SOURCES[name]()

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)] * 2)
    def epoch(number, step):
        return source.dataset(number, step)._variant_tensor

    graph = epoch.get_concrete_function().graph
    # Two bytes a token would be 24,000.
    assert graph.as_graph_def().ByteSize() < 15_000
    assert sum(int(tf.size(each)) for each, _ in graph.captures) >= _N


def test_they_are_of_the_host_and_can_be_deleted_from():
    places = _TOKENS == 3
    deletion = WordDeletion(0.0, seeds="only", places=places)
    batches = ResumableBatches(_documents(), transform=deletion)
    for (tokens, ids), _ in batches.dataset.take(3):
        for own, row in zip(tokens.numpy(), _TOKENS[ids.numpy()], strict=True):
            assert own[own > 0].tolist() == row[row != 3].tolist()
