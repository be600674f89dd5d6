"""Bounds of mutual information: oracles, loops, limits, Eq. (9) by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives import mutual_information as mi
from tests.references.bmi_reference import ORACLE, softplus, table_pairs

_TABLE = ORACLE["table"]
_BOUNDS = {
    "mine": (mi.mine_bound, {}),
    "nwj_log_baseline_1": (mi.nwj_bound, {}),
    "nwj_log_baseline_0": (mi.nwj_bound, {"log_baseline": 0.0}),
    "nwj_log_baseline_0.35": (mi.nwj_bound, {"log_baseline": 0.35}),
    "smile_clip_5": (mi.smile_estimate, {}),
    "smile_clip_0.7": (mi.smile_estimate, {"clip": 0.7}),
}


# === Values and gradients of the oracle ===


@pytest.mark.parametrize("name", _BOUNDS)
def test_bounds_of_the_table(name):
    bound, options = _BOUNDS[name]
    joint, marginal, *_ = table_pairs()
    loss, extra = bound(joint, marginal, **options)
    assert loss.dtype == tf.float64
    assert loss.shape == []
    assert -float(loss) == pytest.approx(_TABLE[name], abs=1e-12)
    assert float(extra.joint - extra.marginal) == pytest.approx(_TABLE[name], abs=1e-12)
    # Marginal scores have any shape.
    square = bound(joint, marginal.reshape(60, 60), **options).loss
    assert float(square) == pytest.approx(float(loss), abs=1e-12)


def test_eq6_of_the_table():
    joint, marginal, *_ = table_pairs()
    loss, _ = mi.jsd_proxy(joint, marginal.reshape(60, 60))
    assert -np.mean(loss) == pytest.approx(_TABLE["eq6"], abs=1e-12)


@pytest.mark.parametrize("name", ["mine", "eq6"])
def test_gradients_of_the_table(name):
    *_, joint, marginal = table_pairs()
    scores = tf.constant(_TABLE["T"], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(scores)
        given = [tf.gather_nd(scores, cells.T) for cells in (joint, marginal)]
        if name == "mine":
            value = -mi.mine_bound(*given).loss
        else:
            value = -tf.reduce_mean(
                mi.jsd_proxy(given[0], tf.reshape(given[1], [60, 60])).loss
            )
    expected = _TABLE[f"gradient_{name}_by_T"]
    np.testing.assert_allclose(tape.gradient(value, scores), expected, atol=1e-12)


def test_phase_one_with_two_negatives():
    case = ORACLE["phase_one"]
    joint, marginal = (
        tf.constant(case[f"{kind}_scores"], tf.float64)
        for kind in ("joint", "marginal")
    )
    with tf.GradientTape() as tape:
        tape.watch([joint, marginal])
        loss, extra = mi.jsd_proxy(joint, marginal)
        mean = tf.reduce_mean(loss)
    np.testing.assert_allclose(loss, case["loss"], atol=1e-12)
    accuracy = np.mean(extra.pair_accuracy)
    assert accuracy == pytest.approx(case["pairwise_accuracy"])
    for kind, gradient in zip(
        ("joint", "marginal"), tape.gradient(mean, [joint, marginal]), strict=True
    ):
        expected = case[f"gradient_{kind}_of_mean"]
        np.testing.assert_allclose(gradient, expected, atol=1e-12)
    zero = mi.jsd_proxy(np.zeros(1), np.zeros(1)).loss
    assert float(zero[0]) == pytest.approx(case["loss_at_zero"], abs=1e-12)


def test_matrix_of_scores():
    case = ORACLE["score_matrix"]
    scores = np.array(case["scores"])
    np.testing.assert_allclose(
        mi.info_nce(scores).loss, case["info_nce_loss"], atol=1e-12
    )
    lower, upper = mi.conditional_bounds(scores)
    np.testing.assert_allclose(lower, case["conditional_lower"], atol=1e-12)
    np.testing.assert_allclose(upper, case["conditional_upper"], atol=1e-12)
    apart = scores[~np.eye(4, dtype=bool)]
    mine = -mi.mine_bound(np.diag(scores), apart).loss
    assert float(mine) == pytest.approx(case["mine_off_diagonal"], abs=1e-12)


@pytest.mark.parametrize("case", ORACLE["gaussian"]["cases"], ids=lambda c: c["rho"])
def test_gaussian_by_quadrature(case):
    """The bounds of T = 0.4 x y, with samples on a grid as dense as their weights."""
    rho, expected = case["rho"], case["T_0.4xy"]
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights /= weights.sum()
    x, z = np.meshgrid(nodes, nodes, indexing="ij")
    both = np.outer(weights, weights)
    joint = 0.4 * x * (rho * x + math.sqrt(1 - rho**2) * z)
    marginal = 0.4 * x * z
    proxy = mi.jsd_proxy(joint.ravel(), marginal.ravel()).loss
    assert -np.sum(both.ravel() * proxy) == pytest.approx(expected["eq6"], abs=1e-6)
    mine = np.sum(both * joint) - np.log(np.sum(both * np.exp(marginal)))
    assert mine == pytest.approx(expected["mine"], abs=1e-6)


# === Properties ===


def test_only_mine_is_blind_to_a_constant(rng):
    joint, marginal = rng.normal(size=9), rng.normal(size=(9, 4))
    change = {
        name: float(
            bound(joint + 2.0, marginal + 2.0).loss - bound(joint, marginal).loss
        )
        for name, bound in (("mine", mi.mine_bound), ("nwj", mi.nwj_bound))
    }
    assert change["mine"] == pytest.approx(0.0, abs=1e-12)
    assert abs(change["nwj"]) > 0.1
    moved = mi.jsd_proxy(joint + 2.0, marginal + 2.0).loss
    assert np.min(np.abs(moved - mi.jsd_proxy(joint, marginal).loss)) > 1e-3


def test_best_constant_of_nwj_gives_mine(rng):
    joint, marginal = rng.normal(size=9), rng.normal(size=50)
    best = math.log(np.mean(np.exp(marginal)))
    found = mi.nwj_bound(joint, marginal, log_baseline=best).loss
    assert float(found) == pytest.approx(
        float(mi.mine_bound(joint, marginal).loss), abs=1e-12
    )
    for other in (best - 0.5, best + 0.5):
        worse = mi.nwj_bound(joint, marginal, log_baseline=other).loss
        assert float(worse) > float(found)


def test_info_nce_sees_no_more_than_the_logarithm_of_the_rows():
    scores = 1e4 * np.eye(5)
    np.testing.assert_allclose(mi.info_nce(scores).loss, -math.log(5), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dtype_is_kept(dtype):
    vector, square = np.ones(3, dtype), np.ones((3, 3), dtype)
    for bound in (mi.jsd_proxy, mi.mine_bound, mi.nwj_bound, mi.smile_estimate):
        assert bound(vector, vector).loss.dtype == dtype
    assert mi.info_nce(square).loss.dtype == dtype
    assert mi.conditional_bounds(square).upper.dtype == dtype
    assert mi.policy_surrogate(*[vector] * 4).loss.dtype == dtype


# === Extremes ===


@pytest.mark.parametrize("joint", [-1e4, 1e4])
@pytest.mark.parametrize("marginal", [-1e4, 1e4, -math.inf])
def test_extreme_scores_have_values_and_gradients(joint, marginal):
    scores = tf.fill([3], joint), tf.fill([3], marginal)
    for bound in (mi.mine_bound, mi.smile_estimate, mi.jsd_proxy):
        with tf.GradientTape() as tape:
            tape.watch(scores)
            loss = tf.reduce_mean(bound(*scores).loss)
        assert not math.isnan(loss)
        for gradient in tape.gradient(loss, scores):
            assert np.all(np.isfinite(gradient))
    proxy = float(mi.jsd_proxy(*scores).loss[0])
    expected = softplus(-joint) + (softplus(marginal) if marginal > -1e9 else 0.0)
    assert proxy == pytest.approx(expected)
    low = mi.nwj_bound(*scores, log_baseline=0.0).loss
    assert float(low) == (math.inf if marginal > 0 else pytest.approx(-joint - 1))


def test_a_batch_of_one():
    one = np.ones((1, 1))
    assert float(mi.info_nce(one).loss[0]) == 0.0
    lower, upper = mi.conditional_bounds(one)
    assert float(lower[0]) == 0.0
    assert float(upper[0]) == math.inf


# === Eq. (9), by enumeration ===


def _policy(logits):
    """Log-probabilities of the six outcomes and of their marginals, `[2, 3]`."""
    joint = tf.reshape(tf.nn.log_softmax(tf.reshape(logits, [-1])), [2, 3])
    x = tf.reduce_logsumexp(joint, axis=1, keepdims=True) + tf.zeros([1, 3], tf.float64)
    y = tf.reduce_logsumexp(joint, axis=0, keepdims=True) + tf.zeros([2, 1], tf.float64)
    return joint, x, y


@pytest.mark.parametrize("marginals", ["exact", "of trajectories"])
@pytest.mark.parametrize("baselines", [(0.0, 0.0), (-0.7, 1.3)])
def test_expected_gradient_is_that_of_eq7(marginals, baselines):
    """All 36 pairs of outcomes, weighed with their probabilities."""
    case = ORACLE["policy_gradient"]
    counts = np.array(case["counts"]) / 24
    logits, scores = tf.constant(np.log(counts)), np.array(case["D"])
    cells = list(itertools.product(range(2), range(3)))
    pairs = list(itertools.product(cells, repeat=2))
    probs = np.array([counts[a] * counts[b] for a, b in pairs])
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    with tf.GradientTape() as tape:
        tape.watch(logits)
        joint, x, y = _policy(logits)
        if marginals == "of trajectories":
            x = y = joint
        loss, extra = mi.policy_surrogate(
            scores[tuple(first.T)],
            tf.gather_nd(joint, first),
            scores[first[:, 0], second[:, 1]],
            tf.gather_nd(x, first) + tf.gather_nd(y, second),
            joint_baseline=baselines[0],
            marginal_baseline=tf.fill([36], tf.constant(baselines[1], tf.float64)),
        )
        expected_loss = tf.reduce_sum(probs * loss)
    np.testing.assert_allclose(
        -tape.gradient(expected_loss, logits),
        case["gradient_by_joint_logits"],
        atol=1e-12,
    )
    objective = np.sum(probs * (extra.joint_rewards - extra.marginal_rewards))
    assert objective == pytest.approx(case["objective"], abs=1e-12)


def test_descent_raises_the_models_own_objective():
    """One small step against the gradient; the authors' sign would lower it."""
    case = ORACLE["policy_gradient"]
    logits, scores = np.log(np.array(case["counts"]) / 24), np.array(case["D"])

    def objective(logits):
        joint, x, y = (np.exp(values) for values in _policy(tf.constant(logits)))
        joint_part = np.sum(joint * np.vectorize(softplus)(-scores))
        return -joint_part - np.sum(x * y * np.vectorize(softplus)(scores))

    ascent = np.array(case["gradient_by_joint_logits"])
    assert objective(logits) == pytest.approx(case["objective"], abs=1e-12)
    assert objective(logits + 0.1 * ascent) > objective(logits)
    assert objective(logits - 0.1 * ascent) < objective(logits)


def test_bound_of_eq10():
    """Text's pairs in place of the model's: off by at most what the KLs allow."""
    case = ORACLE["policy_gradient"]
    scores, model = np.array(case["D"]), np.array(case["counts"]) / 24
    text = np.array([[0.3, 0.1, 0.1], [0.1, 0.2, 0.2]])
    positive, negative = (
        np.vectorize(softplus)(values) for values in (-scores, scores)
    )

    def value(joint):
        product = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
        return -np.sum(joint * positive) - np.sum(product * negative)

    def divergence(p, q):
        return np.sum(p * np.log(p / q))

    most = np.max(positive) * math.sqrt(2 * divergence(text, model)) + np.max(
        negative
    ) * math.sqrt(
        2 * sum(divergence(text.sum(axis), model.sum(axis)) for axis in (0, 1))
    )
    assert 0 < abs(value(model) - value(text)) <= most


def test_only_log_probabilities_get_a_gradient(rng):
    values = [tf.constant(rng.normal(size=4)) for _ in range(6)]
    with tf.GradientTape() as tape:
        tape.watch(values)
        loss = mi.policy_surrogate(
            *values[:4], joint_baseline=values[4], marginal_baseline=values[5]
        ).loss
    gradients = tape.gradient(loss, values)
    assert [gradient is not None for gradient in gradients] == [
        *(False, True, False, True),
        *(False, False),
    ]


# === Mistakes ===


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mi.jsd_proxy(np.ones(2), np.ones((3, 2))), "jsd_proxy: axis B"),
        (lambda: mi.mine_bound(np.ones((2, 2)), np.ones(2)), "mine_bound: `joint_sc"),
        (lambda: mi.info_nce(np.ones((2, 3))), "info_nce: axis N"),
        (lambda: mi.conditional_bounds(np.ones(2)), "conditional_bounds: `log_probs`"),
        (lambda: mi.smile_estimate(np.ones(2), np.ones(2), clip=0.0), "`clip` must"),
        (
            lambda: mi.nwj_bound(np.ones(2), np.ones(2), log_baseline=math.nan),
            "`log_baseline` must be finite",
        ),
        (
            lambda: mi.policy_surrogate(*[np.ones(2)] * 4, joint_baseline=np.ones(3)),
            "axis B of `joint_baseline` is 3",
        ),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(ValueError, match=message):
        call()
    with pytest.raises(TypeError, match="must be floating point, found int64"):
        mi.mine_bound(np.ones(2, int), np.ones(2))
