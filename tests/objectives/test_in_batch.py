"""In-batch induced losses against member-by-member sums and the separate losses."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives import imm
from rlm_tf.objectives.cross_entropy_with_imm import (
    cross_entropy_with_imm,
    cross_entropy_with_imms,
    linear_cross_entropy_with_imm,
    linear_cross_entropy_with_imms,
)
from rlm_tf.objectives.in_batch import Groups, grouped_induced_cross_entropy
from rlm_tf.restricted.sparse_probs import SparseProbs
from tests.references import imm_reference as reference

ROWS = np.array([0, 2, 3, 5, 6, 7], np.int32)
GROUPS = np.array([1, 0, 1, 1, 2, 0], np.int32)


def _groups(rng, vocabulary=9, bank=False, dtype=np.float64):
    target = reference.softmax(rng.normal(size=(3, vocabulary)) * 2)
    target[0, 0] = 0.0
    target /= target.sum(axis=1, keepdims=True)
    extra = {}
    if bank:
        counts = np.array([0, 2, 3], np.int32)
        probs = reference.softmax(rng.normal(size=(3, vocabulary)))
        extra = {
            "bank_sums": (probs * counts[:, None]).astype(dtype),
            "bank_counts": counts,
        }
    return Groups(ROWS, GROUPS, target.astype(dtype), **extra)


@pytest.mark.parametrize("bank", [False, True])
def test_value_and_gradient_match_the_definition(rng, bank):
    logits = rng.normal(size=(8, 9)) * 2
    groups = _groups(rng, bank=bank)
    upstream = np.array([0.3, -1.0, 2.0])

    # The predictions of the batch stand for those of the bank.
    enlargement = 1.0
    if bank:
        sizes = np.bincount(GROUPS)
        enlargement = (sizes + groups.bank_counts) / sizes

    def naive(point):
        return reference.grouped_imm_loss(point, *groups[:5]) @ (upstream * enlargement)

    variable = tf.Variable(logits)
    with tf.GradientTape() as tape:
        output = grouped_induced_cross_entropy(variable, groups)
        total = tf.reduce_sum(output.loss * upstream)
    np.testing.assert_allclose(
        output.loss, reference.grouped_imm_loss(logits, *groups[:5]), rtol=1e-12
    )
    gradient = tf.convert_to_tensor(tape.gradient(total, variable))
    np.testing.assert_allclose(
        gradient, reference.numeric_gradient(naive, logits), atol=1e-8
    )
    assert np.all(gradient.numpy()[[1, 4]] == 0.0)


def test_equals_the_sampled_loss_of_the_group(rng):
    logits = tf.constant(rng.normal(size=(8, 9)))
    groups = _groups(rng)
    found = grouped_induced_cross_entropy(logits, groups).loss
    for group in range(3):
        members = tf.gather(logits, ROWS[group == GROUPS])
        expected = imm.induced_cross_entropy(
            groups.target_probs[group], tf.math.log_softmax(members)
        ).loss
        np.testing.assert_allclose(found[group], expected, rtol=1e-12)


def test_a_bank_of_copies_changes_nothing(rng):
    logits = tf.Variable(rng.normal(size=(8, 9)))
    alone = _groups(rng)
    probs = tf.nn.softmax(tf.gather(logits, ROWS))
    copies = alone._replace(
        bank_sums=3 * tf.math.unsorted_segment_sum(probs, GROUPS, 3),
        bank_counts=3 * np.bincount(GROUPS),
    )
    found = []
    for groups in (alone, copies):
        with tf.GradientTape() as tape:
            loss = grouped_induced_cross_entropy(logits, groups).loss
        found.append((loss, tf.convert_to_tensor(tape.gradient(loss, logits))))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-12)


def test_expected_gradient_with_a_bank_is_that_of_differentiating_all(rng):
    """Exact expectation over three draws from two extended contexts."""
    contexts = tf.Variable(rng.normal(size=(2, 9)))
    share = np.array([0.3, 0.7])
    target = reference.softmax(rng.normal(size=(1, 9)))
    whole, banked = 0.0, 0.0
    for draws in itertools.product((0, 1), repeat=3):
        chance = np.prod(share[list(draws)])
        with tf.GradientTape(persistent=True) as tape:
            logits = tf.gather(contexts, draws)
            all_live = Groups(np.arange(3), np.zeros(3, np.int32), target)
            one_live = Groups(
                np.zeros(1, np.int32),
                np.zeros(1, np.int32),
                target,
                bank_sums=tf.reduce_sum(tf.nn.softmax(logits[1:]), 0, keepdims=True),
                bank_counts=np.array([2]),
            )
            losses = [
                grouped_induced_cross_entropy(logits, groups).loss
                for groups in (all_live, one_live)
            ]
        np.testing.assert_allclose(losses[0], losses[1], rtol=1e-12)
        first, second = (
            tf.convert_to_tensor(tape.gradient(loss, contexts)) for loss in losses
        )
        whole, banked = whole + chance * first, banked + chance * second
    np.testing.assert_allclose(banked, whole, rtol=1e-10)


def test_a_group_of_one_is_the_noising_loss(rng):
    logits = tf.constant(rng.normal(size=(1, 9)))
    target = reference.softmax(rng.normal(size=(1, 9)))
    groups = Groups(np.array([0]), np.array([0]), target)
    expected = imm.noising_cross_entropy(target, tf.math.log_softmax(logits)).loss
    np.testing.assert_allclose(
        grouped_induced_cross_entropy(logits, groups).loss, expected, rtol=1e-12
    )


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("bank", [False, True])
def test_joint_loss_equals_the_two_losses(rng, use_bias, bank):
    x = tf.Variable(rng.normal(size=(8, 4)))
    kernel = tf.Variable(rng.normal(size=(9, 4)))
    bias = tf.Variable(rng.normal(size=9)) if use_bias else None
    variables = [x, kernel] + ([bias] if use_bias else [])
    targets = tf.constant(rng.integers(9, size=8), tf.int32)
    groups = _groups(rng, bank=bank)
    per_token, per_group = rng.normal(size=8), np.array([0.3, -1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        joint = linear_cross_entropy_with_imm(x, kernel, bias, targets, groups)
        total = tf.reduce_sum(joint.cross_entropy * per_token)
        total += tf.reduce_sum(joint.induced * per_group)
        logits = tf.matmul(x, kernel, transpose_b=True)
        logits = logits + bias if use_bias else logits
        nll = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
        induced = grouped_induced_cross_entropy(logits, groups).loss
        separate = tf.reduce_sum(nll * per_token) + tf.reduce_sum(induced * per_group)
    np.testing.assert_allclose(joint.cross_entropy, nll, rtol=1e-12)
    np.testing.assert_allclose(joint.induced, induced, rtol=1e-12)
    for found, expected in zip(
        tape.gradient(total, variables), tape.gradient(separate, variables), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def _sparse(rng):
    """Two distributions, of a base and some words."""
    return SparseProbs(
        tf.constant([[0.7], [0.5]], tf.float64),
        tf.constant(rng.dirichlet(np.ones(9), 1)),
        tf.constant([0, 1, 1], tf.int64),
        tf.constant([3, 3, 8], tf.int64),
        tf.constant([0.3, 0.2, 0.3], tf.float64),
    )


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("of_logits", [True, False])
def test_rows_alone_are_groups_of_one(rng, use_bias, of_logits):
    x = tf.Variable(rng.normal(size=(8, 4)))
    kernel = tf.Variable(rng.normal(size=(9, 4)))
    bias = tf.Variable(rng.normal(size=9)) if use_bias else None
    variables = [x, kernel] + ([bias] if use_bias else [])
    targets = tf.constant(rng.integers(9, size=8), tf.int32)
    groups = _groups(rng)
    probs = _sparse(rng)
    rows = np.array([4, 1], np.int32)
    apart = groups._replace(alone=probs.at(rows, 8))
    together = Groups(
        np.append(ROWS, rows),
        np.append(GROUPS, [3, 4]).astype(np.int32),
        np.concatenate([groups.target_probs, probs.dense()]),
    )
    per_token, per_group = rng.uniform(size=8), rng.uniform(size=5)

    def joint(given):
        if not of_logits:
            return linear_cross_entropy_with_imm(x, kernel, bias, targets, given)
        logits = tf.matmul(x, kernel, transpose_b=True)
        logits = logits + bias if use_bias else logits
        return cross_entropy_with_imm(logits, targets, given)

    losses, gradients = [], []
    for given in (apart, together):
        with tf.GradientTape() as tape:
            found = joint(given)
            induced = found.induced
            if given is apart:
                assert found.alone.shape == [8]
                others = np.setdiff1d(np.arange(8), rows)
                assert not np.any(tf.gather(found.alone, others))
                induced = tf.concat([induced, tf.gather(found.alone, rows)], 0)
            total = tf.reduce_sum(found.cross_entropy * per_token)
            total += tf.reduce_sum(induced * per_group)
        losses.append(induced)
        gradients.append(tape.gradient(total, variables))
    np.testing.assert_allclose(*losses, rtol=1e-12)
    for found, expected in zip(*gradients, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("main", [0.0, 1.0])
@pytest.mark.parametrize("of_logits", [True, False])
def test_several_restricted_models_add_up_in_one_softmax(rng, of_logits, main):
    """A row is in a group of the first, alone for the second, with a bank for a third.

    Their gradients add up where the main loss has none, too.
    """
    x = tf.Variable(rng.normal(size=(8, 4)))
    kernel = tf.Variable(rng.normal(size=(9, 4)))
    bias = tf.Variable(rng.normal(size=9))
    variables, targets = [x, kernel, bias], tf.constant(rng.integers(9, size=8))
    probs = _sparse(rng)
    pairs = Groups(
        np.array([2, 7], np.int32), np.array([0, 0]), rng.dirichlet(np.ones(9), 1)
    )
    alone = pairs._replace(alone=probs.at(np.array([ROWS[0], 4], np.int32), 8))
    several = [_groups(rng), alone, _groups(rng, bank=True)]
    per_token = main * rng.uniform(size=8)
    weights = [rng.uniform(size=size) for size in (3, 1, 3)]
    per_row = rng.uniform(size=8)

    def total(cross_entropy, induced, alone):
        sums = [tf.reduce_sum(a * b) for a, b in zip(induced, weights, strict=True)]
        own = tf.reduce_sum(alone * per_row)
        return tf.reduce_sum(cross_entropy * per_token) + tf.add_n(sums) + own

    with tf.GradientTape(persistent=True) as tape:
        logits = tf.matmul(x, kernel, transpose_b=True) + bias
        if of_logits:
            found = cross_entropy_with_imms(logits, targets, several)
        else:
            found = linear_cross_entropy_with_imms(x, kernel, bias, targets, several)
        assert [each is None for each in found.alone] == [True, False, True]
        together = total(found.cross_entropy, found.induced, found.alone[1])
        each = [cross_entropy_with_imm(logits, targets, groups) for groups in several]
        induced = [one.induced for one in each]
        apart = total(each[0].cross_entropy, induced, each[1].alone)
    np.testing.assert_allclose(together, apart, rtol=1e-12)
    for one, other in zip(
        tape.gradient(together, variables),
        tape.gradient(apart, variables),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("bank", [False, True])
def test_underflowing_probabilities_use_the_exact_path(rng, bank):
    """Probabilities of exp(-150) vanish in float32; losses and gradients do not."""
    x = np.eye(9, 9)[[0, 1, 2, 3, 4, 5, 6, 7]] * 150.0
    kernel = np.eye(9)
    groups = _groups(rng, bank=bank)
    if bank:
        sums = groups.bank_sums.copy()
        sums[2] *= 1e-32
        groups = groups._replace(bank_sums=sums)
    targets = tf.constant([8] * 8, tf.int32)

    def run(dtype):
        inputs = tf.Variable(x.astype(dtype))
        cast = groups._replace(target_probs=groups.target_probs.astype(dtype))
        with tf.GradientTape() as tape:
            joint = linear_cross_entropy_with_imm(
                inputs, tf.constant(kernel.astype(dtype)), None, targets, cast
            )
            total = tf.reduce_sum(joint.cross_entropy) + tf.reduce_sum(joint.induced)
        return joint, tape.gradient(total, inputs)

    narrow, narrow_gradient = run(np.float32)
    wide, wide_gradient = run(np.float64)
    assert np.max(wide.induced) > 60.0
    np.testing.assert_allclose(narrow.induced, wide.induced, rtol=1e-5)
    np.testing.assert_allclose(narrow.cross_entropy, wide.cross_entropy, rtol=1e-6)
    np.testing.assert_allclose(narrow_gradient, wide_gradient, atol=1e-4)


def test_no_group_at_all_costs_nothing(rng):
    empty = np.zeros(0, np.int32)
    groups = Groups(empty, empty, np.zeros((0, 9)))
    x = tf.Variable(rng.normal(size=(8, 4)))
    kernel = tf.constant(rng.normal(size=(9, 4)))
    with tf.GradientTape() as tape:
        targets = tf.zeros(8, tf.int32)
        joint = linear_cross_entropy_with_imm(x, kernel, None, targets, groups)
        total = tf.reduce_sum(joint.cross_entropy) + tf.reduce_sum(joint.induced)
    assert joint.induced.shape == [0]
    assert np.all(np.isfinite(tape.gradient(total, x)))


def test_mismatched_groups_are_named(rng):
    groups = _groups(rng)._replace(groups=GROUPS[:-1])
    with pytest.raises(ValueError, match="axis M of `groups` is 5, expected 6"):
        grouped_induced_cross_entropy(tf.zeros([8, 9], tf.float64), groups)
