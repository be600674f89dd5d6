"""Tests of the filters on logits."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies

from rlm_tf.generation import (
    filter_logits,
    keep_eta,
    keep_nucleus,
    keep_top_k,
    keep_typical,
    scale_by_temperature,
)
from tests.references import generation as reference

# p, and what the filters make of it, computed two independent ways.
P = [0.4, 0.25, 0.14, 0.1, 0.07, 0.04]
TEMPERATURE_HALF = [
    0.6187161639597835,
    0.24168600154679037,
    0.07579273008507346,
    0.038669760247486466,
    0.018948182521268366,
    0.006187161639597834,
]
TEMPERATURE_TWO = [
    0.2764924586035379,
    0.21858648126174954,
    0.1635751444523898,
    0.13824622930176894,
    0.1156650938758539,
    0.08743459250469983,
]
ETA_SMALL = [
    0.4166666666666667,
    0.2604166666666667,
    0.14583333333333334,
    0.10416666666666667,
    0.07291666666666667,
    0,
]
ETA_LARGE = [0.6153846153846154, 0.3846153846153846, 0, 0, 0, 0]
TYPICAL_WIDE = [
    0.44943820224719105,
    0.2808988764044944,
    0.15730337078651688,
    0.11235955056179776,
    0,
    0,
]
FIRST_THREE = [0.5063291139240507, 0.3164556962025316, 0.17721518987341772, 0, 0, 0]


def probs_of(logits):
    return tf.nn.softmax(tf.cast(logits, tf.float64)).numpy()


@pytest.fixture(params=[tf.float64, tf.float32])
def logits(request):
    # The shift shows that logits need not be normalised.
    return tf.math.log(tf.constant(P, request.param)) + 17.0


def tolerance(logits):
    return 1e-12 if logits.dtype == tf.float64 else 1e-5


@pytest.mark.parametrize(
    ("apply", "expected"),
    [
        (lambda x: scale_by_temperature(x, 0.5), TEMPERATURE_HALF),
        (lambda x: scale_by_temperature(x, 2.0), TEMPERATURE_TWO),
        (lambda x: scale_by_temperature(x, 1.0), P),
        (lambda x: keep_top_k(x, 3), FIRST_THREE),
        (lambda x: keep_nucleus(x, 0.7), FIRST_THREE),
        (lambda x: keep_eta(x, 0.09), ETA_SMALL),
        (lambda x: keep_eta(x, 0.5), ETA_LARGE),
        (lambda x: keep_typical(x, 0.5), FIRST_THREE),
        (lambda x: keep_typical(x, 0.8), TYPICAL_WIDE),
        (lambda x: filter_logits(x, eta=0.09), ETA_SMALL),
        (lambda x: filter_logits(x, typical_p=0.8), TYPICAL_WIDE),
        (lambda x: filter_logits(x, temperature=0.5), TEMPERATURE_HALF),
        (lambda x: filter_logits(x, top_k=3), FIRST_THREE),
        (lambda x: filter_logits(x, top_p=0.7), FIRST_THREE),
    ],
)
def test_oracle(logits, apply, expected):
    np.testing.assert_allclose(
        probs_of(apply(logits)), expected, atol=tolerance(logits)
    )


def test_permuted_tokens_keep_their_probability(logits):
    order = [4, 0, 5, 2, 1, 3]
    for filtered in (keep_top_k, lambda x, k: keep_nucleus(x, 0.7)):
        permuted = probs_of(filtered(tf.gather(logits, order), 3))
        np.testing.assert_allclose(
            permuted, np.array(FIRST_THREE)[order], atol=tolerance(logits)
        )


def test_excluded_are_minus_infinity_and_kept_are_unchanged(logits):
    filtered = keep_top_k(logits, 2).numpy()
    np.testing.assert_array_equal(filtered[:2], logits.numpy()[:2])
    assert np.all(np.isneginf(filtered[2:]))
    assert filtered.dtype == logits.numpy().dtype


# === Limits ===


def test_neutral_parameters_exclude_nothing(logits):
    for filtered in (
        keep_top_k(logits, 0),
        keep_top_k(logits, 6),
        keep_top_k(logits, 1000),
        keep_nucleus(logits, 1.0),
        keep_eta(logits, 0.0),
        keep_typical(logits, 1.0),
        filter_logits(logits),
    ):
        np.testing.assert_allclose(probs_of(filtered), P, atol=tolerance(logits))


@pytest.mark.parametrize("T", [0.0, 1e-30, 1e-6])
def test_cold_limit_is_greedy(T):
    logits = tf.constant([[1.0, 5.0, -3e38, 4.999], [-np.inf, -2.0, 0.0, 0.0]])
    expected = np.array([[0, 1, 0, 0], [0, 0, 0.5, 0.5]])
    if T == 0:
        expected[1] = [0, 0, 1, 0]  # the first of equals
    scaled = scale_by_temperature(logits, T)
    np.testing.assert_allclose(probs_of(scaled), expected, atol=1e-12)


def test_hot_limit_is_uniform_over_possible_tokens():
    scaled = scale_by_temperature(tf.constant([1.0, -50.0, -np.inf, 30.0]), 1e30)
    np.testing.assert_allclose(probs_of(scaled), [1 / 3, 1 / 3, 0, 1 / 3], atol=1e-7)


def test_nucleus_of_nothing_keeps_the_best():
    kept = keep_nucleus(tf.constant([[0.0, 2.0, 2.0], [3.0, 1.0, 1.0]]), 0.0)
    np.testing.assert_array_equal(probs_of(kept), [[0, 1, 0], [1, 0, 0]])


def test_ties_go_to_the_lower_id():
    equal = tf.zeros([5])
    np.testing.assert_allclose(
        probs_of(keep_top_k(equal, 2)), [0.5, 0.5, 0, 0, 0], atol=1e-12
    )
    np.testing.assert_allclose(
        probs_of(keep_nucleus(equal, 0.5)), [1 / 3, 1 / 3, 1 / 3, 0, 0], atol=1e-12
    )
    # A sum that is exactly p reaches it: binary fractions do not round.
    quarters = keep_nucleus(tf.zeros([4]), 0.5)
    np.testing.assert_array_equal(probs_of(quarters), [0.5, 0.5, 0, 0])
    mixed = tf.constant([0.0, 1.0, 0.0, 1.0, 0.0])
    kept = np.isfinite(keep_top_k(mixed, 3).numpy())
    np.testing.assert_array_equal(kept, [True, True, False, True, False])


def test_tokens_excluded_before_stay_excluded():
    logits = tf.constant([-np.inf, 0.0, -np.inf, 1.0])
    for filtered in (keep_top_k(logits, 3), keep_nucleus(logits, 0.99)):
        np.testing.assert_array_equal(
            np.isfinite(filtered.numpy()), [False, True, False, True]
        )


# === Composition and rows ===


@hypothesis.given(
    weights=strategies.lists(strategies.integers(1, 50), min_size=1, max_size=12),
    t=strategies.sampled_from([0.3, 1.0, 1.7]),
    k=strategies.integers(0, 13),
    p=strategies.sampled_from([0.0, 0.111, 0.49, 0.873, 1.0]),
    e=strategies.sampled_from([0.0, 0.0123, 0.0817, 0.51]),
    m=strategies.sampled_from([0.113, 0.517, 0.871, 1.0]),
)
@hypothesis.settings(deadline=None, max_examples=60)
def test_filters_in_order(weights, t, k, p, e, m):
    probs = [weight / sum(weights) for weight in weights]
    logits = tf.math.log(tf.constant(probs, tf.float64))
    expected = reference.temperature(probs, t)
    if k:
        expected = reference.top_k(expected, k)
    if p < 1:
        expected = reference.nucleus(expected, p)
    if e > 0:
        expected = reference.eta(expected, e)
    # Of tokens equally far from the entropy rounding decides which comes first.
    if m < 1 and len(set(expected)) == len(expected):
        expected = reference.typical(expected, m)
    else:
        m = 1.0
    filtered = filter_logits(
        logits, temperature=t, top_k=k, top_p=p, eta=e, typical_p=m
    )
    np.testing.assert_allclose(probs_of(filtered), expected, atol=1e-9)
    one_by_one = keep_nucleus(keep_top_k(scale_by_temperature(logits, t), k), p)
    one_by_one = keep_typical(keep_eta(one_by_one, e), m)
    np.testing.assert_array_equal(filtered, one_by_one)


def test_numbers_are_as_exact_as_the_logits():
    logits = tf.constant([0.0, -1.3, -2.9], tf.float64)
    expected = np.array([0.0, -1.3, -2.9]) / 0.3
    np.testing.assert_allclose(
        scale_by_temperature(logits, 0.3), expected, rtol=1e-14, atol=0
    )
    np.testing.assert_allclose(
        scale_by_temperature(logits[tf.newaxis], [0.3])[0], expected, rtol=1e-14
    )


def test_each_row_has_its_own_parameters(rng):
    logits = tf.constant(rng.normal(size=(4, 9)), tf.float32)
    t, k, p = [0.0, 0.5, 1.0, 2.0], [0, 3, 5, 100], [1.0, 0.9, 0.3, 0.8]
    together = filter_logits(
        logits, temperature=tf.constant(t), top_k=tf.constant(k), top_p=np.array(p)
    )
    for row in range(4):
        alone = filter_logits(
            logits[row], temperature=t[row], top_k=k[row], top_p=p[row]
        )
        np.testing.assert_array_equal(together[row], alone)


def test_any_leading_axes(rng):
    logits = tf.constant(rng.normal(size=(2, 3, 7)), tf.float32)
    k = tf.constant([[1, 2, 3], [4, 5, 0]])
    kept = np.isfinite(keep_top_k(logits, k).numpy()).sum(-1)
    np.testing.assert_array_equal(kept, [[1, 2, 3], [4, 5, 7]])


def test_graph_with_unknown_shapes(rng):
    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None]),
            tf.TensorSpec([], tf.int32),
            tf.TensorSpec([], tf.float32),
        ]
    )
    def compiled(logits, k, p):
        return filter_logits(logits, temperature=0.7, top_k=k, top_p=p)

    logits = tf.constant(rng.normal(size=(3, 8)), tf.float32)
    for k, p in ((0, 1.0), (3, 1.0), (0, 0.5), (4, 0.6)):
        expected = filter_logits(logits, temperature=0.7, top_k=k, top_p=p)
        np.testing.assert_allclose(compiled(logits, k, p), expected, atol=1e-6)
    assert compiled(tf.zeros([0, 8]), 2, 0.5).shape == (0, 8)


# === Mistakes ===


@pytest.mark.parametrize(
    ("apply", "message"),
    [
        (lambda x: scale_by_temperature(x, -0.1), "temperature.*-0.1"),
        (lambda x: scale_by_temperature(x, float("nan")), "temperature.*nan"),
        (lambda x: keep_top_k(x, -1), "k.*>= 0.*-1"),
        (lambda x: keep_nucleus(x, 1.5), r"p.*\[0.0, 1.0\].*1.5"),
        (lambda x: filter_logits(x, top_p=-1.0), "top_p"),
        (lambda x: filter_logits(x, top_k=-1), "top_k"),
        (lambda x: keep_eta(x, 1.5), "epsilon"),
        (lambda x: keep_typical(x, -0.5), "mass"),
        (lambda x: filter_logits(x, eta=2.0), "eta"),
        (lambda x: filter_logits(x, typical_p=2.0), "typical_p"),
        (lambda x: keep_top_k(x, tf.constant([1, 2])), "scalar or have the shape"),
    ],
)
def test_mistakes(logits, apply, message):
    with pytest.raises(ValueError, match=message):
        apply(logits)
