"""Replaced tokens: losses by loops, gradients, identities by enumeration, theory."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
import tensorflow as tf

from rlm_tf.objectives import replaced_tokens
from rlm_tf.objectives.replaced_tokens import (
    bound,
    corrupted_tokens,
    detection_labels,
    detector_loss,
    generator_loss,
    ideal_detector,
    sweet_spot,
)
from tests.references.transformers_reference import ORACLE

_RNG = np.random.default_rng(0)
_LOGITS = _RNG.normal(size=[2, 3, 5])
_TOKENS = np.array([[1, 4, 0], [2, 2, 3]])
_POSITIONS = np.array([[True, False, True], [False, True, False]])


# === Losses ===


def test_generator_loss_by_loops():
    loss, extra = generator_loss(_LOGITS, _TOKENS, _POSITIONS)
    assert loss.dtype == tf.float64
    for b, t in itertools.product(range(2), range(3)):
        logits = _LOGITS[b, t]
        expected = math.log(sum(math.exp(z) for z in logits)) - logits[_TOKENS[b, t]]
        expected = expected if _POSITIONS[b, t] else 0.0
        assert float(loss[b, t]) == pytest.approx(expected, abs=1e-12)
        right = _POSITIONS[b, t] and max(logits) == logits[_TOKENS[b, t]]
        assert float(extra.correct[b, t]) == right
    np.testing.assert_array_equal(extra.weights, _POSITIONS)


def test_nothing_of_unmasked_positions_counts():
    logits, tokens = _LOGITS.copy(), _TOKENS.copy()
    logits[~_POSITIONS], tokens[~_POSITIONS] = np.nan, -1
    with tf.GradientTape() as tape:
        x = tf.constant(logits)
        tape.watch(x)
        loss = generator_loss(x, tokens, _POSITIONS).loss
        total = tf.reduce_sum(loss)
    np.testing.assert_allclose(loss, generator_loss(_LOGITS, _TOKENS, _POSITIONS).loss)
    gradient = tape.gradient(total, x).numpy()
    assert not gradient[~_POSITIONS].any()
    probs = np.exp(_LOGITS) / np.exp(_LOGITS).sum(-1, keepdims=True)
    expected = (probs - np.eye(5)[_TOKENS])[_POSITIONS]
    np.testing.assert_allclose(gradient[_POSITIONS], expected, atol=1e-12)


def test_detector_loss_by_loops():
    logits = _RNG.normal(size=[2, 3])
    labels = np.array([[1, 0, 1], [0, 1, 0]])
    padding = np.array([[0, 0, 1], [0, 0, 1]])
    with tf.GradientTape() as tape:
        z = tf.constant(np.where(padding, np.nan, logits))
        tape.watch(z)
        loss, extra = detector_loss(z, labels, padding)
        total = tf.reduce_sum(loss)
    gradient = tape.gradient(total, z).numpy()
    for b, t in itertools.product(range(2), range(3)):
        p = 1 / (1 + math.exp(-logits[b, t]))
        expected = -math.log(p if labels[b, t] else 1 - p)
        present = not padding[b, t]
        assert float(loss[b, t]) == pytest.approx(expected * present, abs=1e-12)
        assert gradient[b, t] == pytest.approx((p - labels[b, t]) * present, abs=1e-12)
        assert float(extra.probs[b, t]) == pytest.approx(p * present)
    np.testing.assert_array_equal(extra.weights, 1 - padding)


def test_half_precision_is_widened():
    logits = tf.constant(_LOGITS, tf.bfloat16)
    assert generator_loss(logits, _TOKENS, _POSITIONS).loss.dtype == tf.float32
    found = detector_loss(logits[..., 0], _POSITIONS, ~_POSITIONS).loss
    assert found.dtype == tf.float32


# === Replacement ===


def test_a_token_that_was_guessed_is_not_replaced():
    original = [[5, 6, 7, 8]]
    corrupted = [[5, 9, 9, 8]]
    positions = [[1, 1, 0, 1]]
    found = detection_labels(original, corrupted, positions)
    assert found.numpy().tolist() == [[False, True, False, False]]


def test_replaced_share_by_enumeration():
    """Share masked times the probability of a wrong draw; uniform: 1 - 1 / V."""
    size, grid = 5, 2000
    # All draws alike: as many uniform numbers as there are cells of a fine grid.
    uniforms = (np.arange(grid) + 0.5) / grid
    for logits, right in ((np.zeros(size), 1 / size), (_LOGITS[0, 0], None)):
        probs = np.exp(logits) / np.exp(logits).sum()
        right = probs[2] if right is None else right
        tokens = np.full(grid, 2)
        masked = np.ones(grid, bool)
        drawn = corrupted_tokens(np.tile(logits, [grid, 1]), tokens, masked, uniforms)
        labels = detection_labels(tokens, drawn, masked).numpy()
        assert labels.mean() == pytest.approx(1 - right, abs=1 / grid)
        counts = np.bincount(drawn, minlength=size) / grid
        np.testing.assert_allclose(counts, probs, atol=2 / grid)


def test_temperature_sharpens_the_draws():
    grid = 1000
    uniforms = (np.arange(grid) + 0.5) / grid
    logits = np.tile([0.0, 1.0], [grid, 1])
    ones = np.ones(grid, bool)
    zeros = np.zeros(grid, np.int32)
    for temperature in (0.5, 1.0, 3.0):
        drawn = corrupted_tokens(logits, zeros, ones, uniforms, temperature=temperature)
        expected = 1 / (1 + math.exp(-1 / temperature))
        assert drawn.numpy().mean() == pytest.approx(expected, abs=2 / grid)
    with pytest.raises(ValueError, match="`temperature` must be finite and positive"):
        corrupted_tokens(logits, zeros, ones, uniforms, temperature=0.0)


def test_no_gradient_goes_from_the_detector_to_the_generator():
    table = tf.Variable(_RNG.normal(size=[5]))
    logits = tf.Variable(_LOGITS)
    uniforms = _RNG.random([2, 3])
    with tf.GradientTape() as tape:
        drawn = corrupted_tokens(logits, _TOKENS, _POSITIONS, uniforms)
        labels = detection_labels(_TOKENS, drawn, _POSITIONS)
        loss = detector_loss(tf.gather(table, drawn), labels, ~_POSITIONS).loss
    gradients = tape.gradient(loss, [logits, table])
    assert gradients[0] is None and gradients[1] is not None


def test_ideal_detector_of_the_oracle():
    for case in ORACLE["ideal_detector"]["cases"]:
        found = ideal_detector(
            case["true_probs"], case["generator_probs"], ratio=case["ratio"]
        )
        for name, value in found._asdict().items():
            np.testing.assert_allclose(value, case[name], rtol=1e-12)


def test_no_detector_is_better_than_the_ideal_one():
    case = ORACLE["ideal_detector"]["cases"][1]
    found = ideal_detector(
        case["true_probs"], case["generator_probs"], ratio=case["ratio"]
    )
    share = found.probability_replaced

    def average(z):
        loss = [
            s * y * detector_loss([x], [1], [0]).loss[0].numpy()
            + s * (1 - y) * detector_loss([x], [0], [0]).loss[0].numpy()
            for x, y, s in zip(z, share, found.probability_of_seeing, strict=True)
        ]
        return sum(loss)

    best = np.log(share / (1 - share))
    assert average(best) == pytest.approx(found.least_cross_entropy, rel=1e-6)
    for change in (0.3, -0.3):
        assert average(best + change) > found.least_cross_entropy


# === Theory ===


def test_sweet_spots_of_the_oracle():
    for row in ORACLE["eq_1_10"]["rows"]:
        k, c = row["k"], row["C"]
        found = sweet_spot(k, c)
        assert (found is not None) == row["interior_min_exists"]
        if found is None:
            continue
        assert found == pytest.approx(row["L_sweet"], rel=1e-12)
        assert bound(found, k, c).numpy() == pytest.approx(row["B_sweet"], rel=1e-12)
        better = "sweet" if bound(found, k, c) < bound(0.0, k, c) else "L=0"
        assert better == row["best"]


@pytest.mark.parametrize("ratio", [0.01, 0.3, 0.6381, 0.6382, 0.85, 0.8577, 0.8578])
def test_sweet_spots_by_search(ratio):
    k = 0.7
    c = ratio * k
    losses = np.linspace(0.5, 30, 400_001)
    values = k * np.exp(-losses) + c * np.sqrt(losses)
    place = int(np.argmin(values))
    found = sweet_spot(k, c)
    # Conditions of the fact sheet: of a minimum, and of one below a perfect generator.
    assert (found is not None) == (ratio < 0.857764)
    if found is None:
        assert place == 0
    else:
        assert found == pytest.approx(losses[place], abs=1e-3)
        assert (bound(found, k, c).numpy() < k) == (ratio < 0.638173)


@pytest.mark.parametrize("powers", [(150, -150), (0, -170), (-300, -305), (300, 299)])
def test_sweet_spots_of_ratios_whose_squares_are_no_numbers(powers):
    k, c = (10.0**power for power in powers)
    loss = sweet_spot(k, c)
    assert loss is not None and loss > 0.5
    # ln k - L = ln C - ln(2 sqrt L).
    left = powers[0] * math.log(10) - loss
    right = powers[1] * math.log(10) - math.log(2 * math.sqrt(loss))
    assert left == pytest.approx(right, abs=1e-9)


def test_bounds_keep_their_dtype():
    assert bound(np.float32(1.0), 1.0, 0.5).dtype == tf.float32
    assert bound(np.array([1, 2]), 1.0, 0.5).dtype == tf.float64
    with pytest.raises(ValueError, match="`loss` must be finite and at least 0"):
        bound(-1.0, 1.0, 0.5)
    with pytest.raises(ValueError, match="`c` must be finite and positive, found 0"):
        sweet_spot(1.0, 0.0)


def test_lemma_1_holds_and_the_step_of_its_proof_does_not():
    """1 - p <= sqrt(-ln p / 2); the norm of (1, 0) - p is not below that root."""
    p = np.linspace(1e-9, 1, 100_001)
    assert np.all(1 - p <= np.sqrt(-np.log(p) / 2) + 1e-15)
    case = ORACLE["lemma1"]["counterexample_to_step"]
    delta, probs = np.array(case["delta"]), np.array(case["p"])
    norm = np.linalg.norm(delta - probs)
    claimed = math.sqrt(-math.log(probs[0]) / 2)
    assert norm == pytest.approx(case["l2_norm"])
    assert claimed == pytest.approx(case["claimed_bound"])
    assert norm > claimed


def test_lemma_2_corrected():
    """mean p <= e^-L (1 + V / 2 e^eps), which the printed line is above."""
    rng = np.random.default_rng(1)
    example = ORACLE["lemma2"]["example"]
    cases = [np.array(example["p_of_original"])]
    cases += [rng.random(rng.integers(2, 9)) ** rng.uniform(0.1, 4) for _ in range(500)]
    for number, p in enumerate(cases):
        loss, variance = -np.log(p).mean(), np.log(p).var()
        epsilon = np.log(p).max() + loss
        corrected = math.exp(-loss) * (1 + variance / 2 * math.exp(epsilon))
        half = variance / 2
        printed = (1 + half) * math.exp(-loss) + half * math.exp(epsilon)
        assert p.mean() <= corrected * (1 + 1e-12) <= printed * (1 + 1e-12)
        assert epsilon <= loss + 1e-12
        if number == 0:
            assert corrected == pytest.approx(example["corrected_bound"])
            assert printed == pytest.approx(example["printed_bound"])


def test_assumption_1_has_a_limit():
    """A generator that is always right leaves one label: a constant detector wins."""
    found = ideal_detector([0.0, 1.0, 0.0], [0.0, 1.0, 0.0], ratio=0.15)
    assert found.replaced_share == 0 and found.least_cross_entropy == 0
    easier = ideal_detector([0.1, 0.8, 0.1], [0.4, 0.2, 0.4], ratio=0.15)
    assert easier.least_cross_entropy > 0


# === Mistakes ===


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: generator_loss(_LOGITS, _TOKENS[:1], _POSITIONS),
            ValueError,
            "generator_loss: ",
        ),
        (
            lambda: generator_loss(_TOKENS[..., None], _TOKENS, _POSITIONS),
            TypeError,
            "`logits` must be floating point",
        ),
        (
            lambda: detector_loss(_LOGITS[..., 0], _POSITIONS, [True]),
            ValueError,
            "leading axes of `padding`",
        ),
        (
            lambda: ideal_detector([0.5, 0.5], [1.0], ratio=0.1),
            ValueError,
            r"must have one shape \[..., V\], found \[2\] and \[1\]",
        ),
        (
            lambda: ideal_detector([0.5, 1.5], [0.5, 0.5], ratio=0.1),
            ValueError,
            r"`true_probs` must lie in \[0, 1\], found 1.5",
        ),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_limit_of_sweet_spots_is_the_greatest_slope():
    peak = scipy.optimize.minimize_scalar(
        lambda loss: -2 * math.sqrt(loss) * math.exp(-loss), bounds=(0.1, 3)
    )
    assert pytest.approx(-peak.fun, rel=1e-9) == replaced_tokens.SWEET_SPOT_LIMIT
