"""BMI: both phases by loops, and who gets which gradient."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.models import (
    BootstrappedMutualInformation,
    InBatchContexts,
    InducedModelMatching,
)
from rlm_tf.models.bmi.continuations import continuation
from rlm_tf.restricted import KneserNey
from tests.models.bmi.small_models import (
    TEXT,
    V,
    batch,
    language_model,
    score_by_loops,
    wrapped,
)
from tests.references.bmi_reference import softplus
from tests.replica_steps import assert_two_replicas_equal_one

# Tracing takes longer than the steps.
pytestmark = pytest.mark.eager

# === Values ===


@pytest.mark.parametrize("negatives", [1, 2])
def test_phase_one_by_loops(negatives):
    bmi = wrapped()
    (tokens, start, pairs), targets, weights = batch(negatives=negatives)
    x = (tokens, start, pairs)
    terms = bmi.objective_terms(x, targets, weights, training=True)
    plain = language_model().objective_terms((tokens, start), targets, weights, True)
    np.testing.assert_array_equal(terms["nll"].loss, plain["nll"].loss)
    found = terms["mutual_information"]
    assert found.loss.shape == [4] and np.all(found.weights == 1)
    flat = [np.reshape(values, (4, *values.shape[2:])) for values in pairs[:3]]
    for row in range(4):
        first, second, others = (pieces[row] for pieces in flat)
        expected = softplus(-score_by_loops(bmi, first, second))
        apart = [softplus(score_by_loops(bmi, first, other)) for other in others]
        assert float(found.loss[row]) == pytest.approx(expected + np.mean(apart))
    joint, apart = [], []
    for row in range(4):
        first, second, others = (pieces[row] for pieces in flat)
        joint.append(score_by_loops(bmi, first, second))
        apart.append([score_by_loops(bmi, first, other) for other in others])
    right = np.array(joint)[:, np.newaxis] > np.array(apart)
    assert float(bmi.accuracy_metric.result()) == pytest.approx(np.mean(right))
    mine = np.mean(joint) - np.log(np.mean(np.exp(apart)))
    assert float(bmi.mine_metric.result()) == pytest.approx(mine, rel=1e-5)


@pytest.mark.parametrize("scale", ["sentence", "sum", "batch"])
def test_phase_two_by_loops(scale):
    bmi = wrapped(phase_two="raml", temperature=0.7, scale=scale)
    bmi.set_phase(1)
    (tokens, start, pairs), targets, weights = batch(pairs=8)
    assert np.any(pairs.offsets > 0) and np.any(pairs.offsets == 0)
    terms = bmi.objective_terms((tokens, start, pairs), targets, weights, True)
    loss, found = terms["raml"].loss, terms["raml"].weights
    flat = [np.reshape(values, (8, *values.shape[2:])) for values in pairs]
    lengths, nlls, log_weights = [], [], []
    for row in range(8):
        first, second, proposal = flat[0][row], flat[1][row], flat[3][row]
        x, y = ([token for token in piece if token >= 0] for piece in (first, proposal))
        log_probs = np.log(tf.nn.softmax(bmi.model(np.array([x + y]))))[0]
        places = range(len(x) - 1, len(x) + len(y) - 1)
        nlls.append(-sum(log_probs[p, t] for p, t in zip(places, y, strict=True)))
        lengths.append(len(y))
        reward = score_by_loops(bmi, first, proposal)
        reward -= score_by_loops(bmi, first, second)
        assert flat[5][row] > 0 or reward == pytest.approx(0.0, abs=1e-12)
        log_weights.append(reward / 0.7 - flat[4][row])
    divided = {
        "sentence": np.array(lengths),
        "sum": 1,
        "batch": sum(lengths),
    }[scale]
    np.testing.assert_allclose(loss, np.array(nlls) / divided, rtol=1e-6)
    expected = np.exp(np.array(log_weights) - max(log_weights))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    size = expected.sum() ** 2 / np.sum(expected**2)
    assert float(bmi.size_metric.result()) == pytest.approx(size, rel=1e-5)
    # X is read once, in the pass that reads Y behind it.
    again = wrapped().objective_terms((tokens, start, pairs), targets, weights, True)
    np.testing.assert_allclose(
        terms["mutual_information"].loss, again["mutual_information"].loss, rtol=1e-9
    )


def test_the_term_of_phase_two_is_normalised_over_the_batch():
    bmi = wrapped(phase_two="raml", weight=0.0, raml_weight=1.0)
    bmi.compile(keras.optimizers.SGD(0.0))
    bmi.set_phase(1)
    element = batch(pairs=8)
    logs = bmi.train_on_batch(*element, return_dict=True)
    terms = bmi.objective_terms(*element, True)
    loss, weights = (np.array(v) for v in terms["raml"][:2])
    expected = np.sum(loss * weights) / np.sum(weights)
    assert logs["raml"] == pytest.approx(expected, rel=1e-5)
    assert logs["loss"] == pytest.approx(logs["nll"] + expected, rel=1e-5)


def test_rewards_of_the_next_sentence_are_exactly_zero():
    bmi = wrapped(language_model(dropout=0.5), phase_two="raml")
    bmi.set_phase(1)
    bmi.objective_terms(*batch(pairs=8, rate=1.0), True)
    assert float(bmi.reward_metric.result()) == 0.0
    assert float(bmi.size_metric.result()) == pytest.approx(8.0)


def test_a_sentence_behind_another():
    first = tf.constant([[5, 6, 0, -1], [7, 0, -1, -1]])
    second = tf.constant([[8, 0, -1, -1], [1, 2, 3, 0]])
    rows = continuation(first, second)
    np.testing.assert_array_equal(
        rows.tokens, [[5, 6, 0, 8, 0, 0, 0, 0], [7, 0, 1, 2, 3, 0, 0, 0]]
    )
    np.testing.assert_array_equal(rows.of_first[:, :3], [[1, 1, 1], [1, 1, 0]])
    assert not np.any(rows.of_first[:, 3:])
    np.testing.assert_array_equal(rows.places, [[2, 3, 4, 5], [1, 2, 3, 4]])
    np.testing.assert_array_equal(rows.weights, [[1, 1, 0, 0], [1, 1, 1, 1]])
    np.testing.assert_array_equal(rows.lengths, [2, 4])


@pytest.mark.parametrize("pooling", ["max", "last", "mean"])
def test_pooling_does_not_see_padding(pooling):
    bmi = wrapped(pooling=pooling)
    sentence = np.array([[3, 5, 0, -1, -1]])
    hidden = bmi.model.hidden_features(sentence[:, :3])
    values = np.concatenate([h[0] for h in hidden], axis=-1)
    expected = {"max": values.max(0), "last": values[-1], "mean": values.mean(0)}
    np.testing.assert_allclose(bmi.features(sentence)[0], expected[pooling], rtol=1e-12)


# === Gradients ===


def _gradients(bmi, name, element):
    with tf.GradientTape() as tape:
        term = bmi.objective_terms(*element, True)[name]
        weights = tf.stop_gradient(tf.cast(term.weights, term.loss.dtype))
        loss = tf.reduce_sum(term.loss * weights)
    omega = bmi.model.trainable_variables
    theta = bmi.discriminator.trainable_variables
    found = tape.gradient(loss, [v.value for v in [*omega, *theta]])
    return found[: len(omega)], found[len(omega) :]


def test_who_gets_which_gradient():
    bmi = wrapped(phase_two="raml")
    bmi.set_phase(1)
    element = batch(pairs=8)
    omega, theta = _gradients(bmi, "mutual_information", element)
    names = [v.path for v in bmi.model.trainable_variables]
    for name, gradient in zip(names, omega, strict=True):
        # phi needs no softmax.
        assert (gradient is None) == ("output" in name), name
    assert all(np.any(gradient != 0) for gradient in theta)
    omega, theta = _gradients(bmi, "raml", element)
    assert all(gradient is not None for gradient in omega)
    assert all(gradient is None for gradient in theta)


def test_a_falling_weight_leaves_the_discriminator_its_gradient():
    """The term is multiplied by the weight: what reaches D then is that of weight 1."""
    element = batch(pairs=8)
    found = []
    for weight in (0.25, keras.optimizers.schedules.ExponentialDecay(0.25, 1, 0.5)):
        bmi = wrapped(weight=weight)
        bmi.compile(keras.optimizers.SGD(0.0))
        loss = bmi.objective_terms(*element, True)["mutual_information"].loss
        found.append((loss, *_gradients(bmi, "mutual_information", element)))
    (loss, omega, theta), (falling_loss, falling_omega, falling_theta) = found
    np.testing.assert_array_equal(falling_loss, loss)
    for value, other in zip(omega, falling_omega, strict=True):
        if value is not None:
            np.testing.assert_allclose(
                tf.convert_to_tensor(other), tf.convert_to_tensor(value), rtol=1e-6
            )
    for value, other in zip(theta, falling_theta, strict=True):
        np.testing.assert_allclose(0.25 * other, value, rtol=1e-6)


def test_all_three_pieces_teach_the_language_model():
    """Words that occur in one kind of piece alone get a gradient in Phase I."""
    bmi = wrapped(language_model(tied=False))
    (tokens, start, pairs), targets, weights = batch(pairs=2)

    def piece(*words):
        return np.array([[[*words, 0, -1]] * 1] * 2, np.int32)

    pairs = pairs._replace(
        first=piece(1, 2),
        second=piece(3, 4),
        negatives=piece(5, 6)[:, :, None],
        proposal=piece(7, 8),
    )
    omega, _ = _gradients(
        bmi, "mutual_information", ((tokens, start, pairs), targets, weights)
    )
    embedding = np.abs(omega[0]).sum(axis=1)
    assert set(np.flatnonzero(embedding)) == {0, 1, 2, 3, 4, 5, 6}


def test_the_likelihood_of_a_sentence_teaches_the_one_before():
    bmi = wrapped(language_model(tied=False), phase_two="raml")
    bmi.set_phase(1)
    (tokens, start, pairs), targets, weights = batch(pairs=2)
    only = np.array([[[1, 2, 0]], [[1, 2, 0]]], np.int32)
    behind = np.array([[[7, 8, 0]], [[7, 8, 0]]], np.int32)
    pairs = pairs._replace(
        first=only, second=behind, negatives=behind[:, :, None], proposal=behind
    )
    omega, _ = _gradients(bmi, "raml", ((tokens, start, pairs), targets, weights))
    assert set(np.flatnonzero(np.abs(omega[0]).sum(axis=1))) == {0, 1, 2, 7, 8}


def test_parts_are_clipped_apart():
    """Gradient descent at rate 1 moves each part by its clipping norm."""
    bmi = wrapped(clip_norm=0.01, weight=5.0)
    bmi.compile(keras.optimizers.SGD(1.0), keras.optimizers.SGD(1.0))
    layers = bmi.model, bmi.discriminator
    before = [layer.get_weights() for layer in layers]
    bmi.train_on_batch(*batch())
    for layer, weights in zip(layers, before, strict=True):
        moves = [a - b for a, b in zip(layer.get_weights(), weights, strict=True)]
        norm = np.sqrt(sum(np.sum(move**2) for move in moves))
        assert norm == pytest.approx(0.01, rel=1e-4)


def test_what_each_part_is_clipped_to():
    """What is given, or the language model has, or 0.25; not what clips terms apart."""
    apart = InducedModelMatching(
        language_model(dtype="float32"),
        KneserNey(2).fit(TEXT, V),
        InBatchContexts(separate_clipping=True),
        clip_norm=0.3,
    )
    for bmi, expected in (
        (wrapped(), {"model": 0.25, "discriminator": 0.25}),
        (wrapped(language_model(clip_norm=5.0)), {"model": 5.0, "discriminator": 0.25}),
        (wrapped(clip_norm=0.1), {"model": 0.1, "discriminator": 0.1}),
        (wrapped(apart), {"discriminator": 0.25}),
    ):
        bmi.compile("sgd", "adam")
        assert bmi.optimizer.clip_norms == expected
        if bmi.model is apart:
            continue  # A config has no contexts, which is where clipping apart is said.
        again = BootstrappedMutualInformation.from_config(bmi.get_config())
        again.compile("sgd")
        assert again.optimizer.clip_norms == expected


@pytest.mark.landing
@pytest.mark.graph
@pytest.mark.parametrize("phase", [0, 1])
def test_two_replicas_equal_one(two_replicas, phase):
    """Three pairs: those of the second replica are one, and one that fills up."""
    (tokens, start, pairs), targets, weights = batch(pairs=3)

    def make():
        inner = language_model(0.3, dtype="float32", clip_norm=0.1)
        bmi = wrapped(inner, phase_two="raml", scale="batch")
        bmi.set_phase(phase)
        return bmi

    element = ((tokens, start, tuple(pairs)), targets, weights)
    assert_two_replicas_equal_one(two_replicas, make, [element] * 2)
