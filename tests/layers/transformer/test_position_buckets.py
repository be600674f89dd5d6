"""Buckets of relative positions: the oracle, logarithms, edges, mistakes."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.layers import relative_position_buckets
from tests.references.transformers_reference import ORACLE, cocolm_bucket, t5_bucket

_CASE = ORACLE["t5_buckets"]


def test_buckets_of_the_oracle():
    for first, last, bucket in _CASE["runs_first_last_bucket"]:
        found = relative_position_buckets(np.arange(first, last + 1))
        assert set(found.tolist()) == {bucket}


@pytest.mark.parametrize("sizes", [(32, 128), (128, 256), (8, 20), (4, 3)])
@pytest.mark.parametrize(
    ("variant", "reference"), [("t5", t5_bucket), ("cocolm", cocolm_bucket)]
)
def test_buckets_by_logarithms(sizes, variant, reference):
    num_buckets, max_distance = sizes
    relative = np.arange(-3 * max_distance, 3 * max_distance + 1)
    found = relative_position_buckets(
        relative, num_buckets=num_buckets, max_distance=max_distance, variant=variant
    )
    expected = [reference(int(r), num_buckets, max_distance) for r in relative]
    assert found.tolist() == expected


def test_one_bucket_is_never_used():
    relative = np.arange(-500, 501).reshape(7, 143)
    found = relative_position_buckets(relative)
    assert found.shape == (7, 143) and found.dtype == np.int32
    assert set(range(32)) - set(found.ravel().tolist()) == {16}
    of_large = relative_position_buckets(relative, num_buckets=128, max_distance=256)
    assert len(np.unique(of_large)) == 127


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_buckets": 6}, "multiple of 4, found 6"),
        ({"num_buckets": 2}, "`num_buckets` must be an integer >= 4"),
        ({"max_distance": 8}, "`max_distance` must be an integer >= 10, found 8"),
        ({"variant": "bert"}, "`variant` must be one of t5, cocolm"),
    ],
)
def test_mistakes(options, message):
    with pytest.raises(ValueError, match=message):
        relative_position_buckets(np.arange(3), **options)
    with pytest.raises(ValueError, match="must be integer ids, found dtype float64"):
        relative_position_buckets(np.arange(3.0))
