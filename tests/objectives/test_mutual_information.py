"""Bounds of mutual information: oracles, loops, limits."""

from __future__ import annotations

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


class _Quadrature:
    """Pairs of normal variables on a grid, with the logarithm of N times its weights.

    A mean of exponentials over the grid, each moved by that logarithm, is the
    expectation.
    """

    def __init__(self, rho):
        nodes, weights = np.polynomial.hermite_e.hermegauss(80)
        weights = np.outer(weights, weights).ravel() / weights.sum() ** 2
        # The last ones are too small for their logarithm to matter.
        self.x, z = (v.ravel() for v in np.meshgrid(nodes, nodes, indexing="ij"))
        self.weights = weights
        self.log_weights = np.log(weights * weights.size)
        self.together = rho * self.x + math.sqrt(1 - rho**2) * z
        self.apart = z
        self.rho = rho

    def mean(self, values):
        return float(np.sum(self.weights * values))

    def pointwise(self, y):
        """The pointwise mutual information of x and y."""
        rho, x = self.rho, self.x
        quadratic = (rho**2 * (x**2 + y**2) - 2 * rho * x * y) / (2 * (1 - rho**2))
        return -0.5 * math.log(1 - rho**2) - quadratic


@pytest.mark.parametrize("case", ORACLE["gaussian"]["cases"], ids=lambda c: c["rho"])
def test_gaussian_by_quadrature(case):
    """The bounds of T = 0.4 x y."""
    grid, expected = _Quadrature(case["rho"]), case["T_0.4xy"]
    joint, marginal = 0.4 * grid.x * grid.together, 0.4 * grid.x * grid.apart
    proxy = mi.jsd_proxy(joint, marginal).loss
    assert -grid.mean(proxy) == pytest.approx(expected["eq6"], abs=1e-6)
    mine = mi.mine_bound([grid.mean(joint)], marginal + grid.log_weights).loss
    assert -float(mine) == pytest.approx(expected["mine"], abs=1e-6)


@pytest.mark.parametrize("case", ORACLE["gaussian"]["cases"], ids=lambda c: c["rho"])
def test_the_pointwise_information_is_the_best_critic(case):
    """Of Eq. (6), whose value there is known; and a more of NWJ with constant a."""
    grid = _Quadrature(case["rho"])
    joint, marginal = grid.pointwise(grid.together), grid.pointwise(grid.apart)
    best = -grid.mean(mi.jsd_proxy(joint, marginal).loss)
    assert best == pytest.approx(case["eq6_at_optimal_T"], abs=1e-6)
    for change in (0.1, -0.1):
        for other in (
            (joint + change, marginal + change),
            (joint * 1.1, marginal * 1.1),
        ):
            assert -grid.mean(mi.jsd_proxy(*other).loss) < best
    assert grid.mean(joint) == pytest.approx(case["mi"], abs=1e-9)
    for constant in (0.0, 1.0, -0.7):
        bound = mi.nwj_bound(
            [grid.mean(joint) + constant],
            marginal + grid.log_weights + constant,
            log_baseline=constant,
        ).loss
        assert -float(bound) == pytest.approx(case["mi"], abs=1e-4)


def test_eq6_at_the_tables_own_information():
    counts = np.array(_TABLE["counts"]) / 60
    product = counts.sum(1, keepdims=True) * counts.sum(0, keepdims=True)
    best = np.log(counts / product)
    joint, marginal = (
        np.sum(part * np.logaddexp(0, sign * best))
        for part, sign in ((counts, -1), (product, 1))
    )
    *_, cells, apart = table_pairs()
    found = mi.jsd_proxy(best[tuple(cells)], best[tuple(apart)].reshape(60, 60)).loss
    assert np.mean(found) == pytest.approx(joint + marginal, abs=1e-12)
    assert -np.mean(found) == pytest.approx(_TABLE["eq6_at_pmi"], abs=1e-9)


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


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_half_precision_do_not_overflow(dtype):
    """Of 64 scores of either sign, whatever the result can hold is there."""
    high, low = (tf.fill([64], tf.constant(value, dtype)) for value in (1e4, -1e4))
    near = {"rel": 1e-2}
    assert float(mi.mine_bound(low, high).loss) == pytest.approx(2e4, **near)
    assert float(mi.mine_bound(high, low).loss) == pytest.approx(-2e4, **near)
    assert float(mi.smile_estimate(low, high).loss) == pytest.approx(10_005, **near)
    proxy = mi.jsd_proxy(low[:2], tf.reshape(high, [2, 32])).loss
    np.testing.assert_allclose(tf.cast(proxy, tf.float32), 2e4, rtol=1e-2)
    nwj = mi.nwj_bound(high, low, log_baseline=0.0).loss
    assert float(nwj) == pytest.approx(-1e4 - 1, **near)
    many = tf.fill([4096], tf.constant(30.0, dtype))
    assert float(mi.nwj_bound(many, many, log_baseline=30.0).loss) == pytest.approx(
        0.0, abs=1e-3
    )


def test_large_scores_keep_their_digits(rng):
    """What is added to all scores changes no bound."""
    scores = rng.normal(size=(6, 6)).astype(np.float32)
    far = scores + np.float32(8192)
    exact = (far - np.float32(8192)).astype(np.float64)
    mine = mi.mine_bound(np.diag(far), far).loss
    expected = mi.mine_bound(np.diag(exact), exact).loss
    assert float(mine) == pytest.approx(float(expected), abs=1e-6)
    np.testing.assert_allclose(
        mi.info_nce(far).loss, mi.info_nce(exact).loss, atol=1e-6
    )
    for found, expected in zip(
        mi.conditional_bounds(far), mi.conditional_bounds(exact), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    least = mi.info_nce(np.array([[1e4, 1e4], [-1e4, 1e4]], np.float32)).loss
    np.testing.assert_allclose(least, [0, -math.log(2)], atol=1e-6)


def test_some_impossible_marginal_scores():
    """They count as e^T = 0 beside others."""
    joint, marginal = np.array([0.5, 1.0]), np.array([0.3, -math.inf, 1.2, -math.inf])
    mean = np.mean(np.exp(marginal))
    mine = mi.mine_bound(joint, marginal).loss
    assert float(mine) == pytest.approx(math.log(mean) - 0.75)
    nwj = mi.nwj_bound(joint, marginal).loss
    assert float(nwj) == pytest.approx(mean / math.e - 0.75)
    proxy = mi.jsd_proxy(joint, marginal.reshape(2, 2)).loss
    expected = np.logaddexp(0, -joint) + np.logaddexp(0, [0.3, 1.2]) / 2
    np.testing.assert_allclose(proxy, expected)


@pytest.mark.parametrize("value", [-1e4, 1e4])
def test_extremes_of_a_models_own_probabilities(value):
    scores = np.array([[value, 0.0], [0.0, -value]])
    lower, upper = mi.conditional_bounds(scores)
    assert np.all(np.isfinite(lower)) and np.all(np.isfinite(upper))
    log_probs = tf.constant([-1e4, -math.inf], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(log_probs)
        # R+ of a very high score is 0, that of D = 0 is -ln 2: the baseline takes it.
        found = mi.policy_surrogate(
            np.array([value, 0.0]),
            log_probs,
            np.array([value, 0.0]),
            log_probs,
            joint_baseline=np.array([0.0, -math.log(2)]),
            marginal_baseline=np.array([0.0, math.log(2)]),
        ).loss
    gradient = tape.gradient(found, log_probs)
    assert np.all(np.isfinite(found)) and float(found[1]) == 0.0
    assert np.all(np.isfinite(gradient)) and float(gradient[1]) == 0.0


def test_as_many_scores_as_half_precision_cannot_count():
    found = mi.mine_bound(np.zeros(2, "float16"), np.zeros((257, 256), "float16"))
    assert float(found.loss) == pytest.approx(0.0, abs=1e-2)


def test_a_batch_of_one():
    one = np.ones((1, 1))
    assert float(mi.info_nce(one).loss[0]) == 0.0
    lower, upper = mi.conditional_bounds(one)
    assert float(lower[0]) == 0.0
    assert float(upper[0]) == math.inf


# === Mistakes ===


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mi.jsd_proxy(np.ones(2), np.ones((3, 2))), "jsd_proxy: axis B"),
        (lambda: mi.mine_bound(np.ones((2, 2)), np.ones(2)), "mine_bound: `joint_sc"),
        (lambda: mi.mine_bound(np.ones(2), np.ones(0)), "`marginal_scores` must hold"),
        (lambda: mi.nwj_bound(np.ones(0), np.ones(2)), "`joint_scores` must hold"),
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
    with pytest.raises(TypeError, match="`marginal_log_probs` must be floating point"):
        mi.policy_surrogate(*[np.ones(2)] * 3, np.ones(2, int))
