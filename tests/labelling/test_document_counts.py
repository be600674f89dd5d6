"""Numbers of documents that have words, by group."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.labelling import document_counts as module
from rlm_tf.labelling.document_counts import document_counts


@pytest.mark.parametrize("rows_at_once", [7, 4096])
def test_counts_by_loops(monkeypatch, rows_at_once):
    monkeypatch.setattr(module, "_ROWS", rows_at_once)
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 9, [30, 5]).astype(np.uint16)
    groups = rng.integers(0, 3, 30)
    expected = np.zeros([3, 9], int)
    for row, group in zip(tokens, groups, strict=True):
        for word in {*row.tolist()}:
            expected[group, word] += 1
    np.testing.assert_array_equal(document_counts(tokens, 9, groups, 3), expected)
    np.testing.assert_array_equal(document_counts(tokens, 9), [expected.sum(axis=0)])
