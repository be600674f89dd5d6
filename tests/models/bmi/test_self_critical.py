"""Phase II by policy gradient: what the model says, its gradient, its mistakes."""

from __future__ import annotations

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import SegmentPairs, SentencePairs, contiguous_batches
from rlm_tf.layers import LSTMCell, PairDiscriminator
from rlm_tf.models import BootstrappedMutualInformation, RegularizedLanguageModel
from rlm_tf.models.bmi.phase_two import self_critical
from rlm_tf.models.bmi.trajectories import trajectories
from rlm_tf.models.language.interface import interface_of
from rlm_tf.training import ResumableBatches
from tests.references.bmi_reference import softplus
from tests.replica_steps import assert_two_replicas_equal_one

# Tracing takes longer than the steps.
pytestmark = pytest.mark.eager

V = 4
TEXT = np.random.default_rng(1).integers(1, V, size=60).astype(np.int32)
TEXT[::4] = 0


def wrapped(dtype="float64", dropout=0.0, **options):
    inner = RegularizedLanguageModel(
        V, LSTMCell(3), 1, input_dropout=dropout, dtype=dtype, seed=5, jit_loop=False
    )
    # Far from uniform.
    inner.set_weights([3 * weight for weight in inner.get_weights()])
    critic = PairDiscriminator(6, seed=2, dtype=inner.dtype_policy)
    options = {"phase_two": "rl", "discriminator": critic, **options}
    return BootstrappedMutualInformation(inner, **options)


def batch(source, rows=2):
    data = ResumableBatches(
        contiguous_batches(TEXT, rows, 5, prefix=0), transform=source
    )
    return next(iter(data.dataset))


# === Trajectories ===


def said(model, contexts, *, length=3, greedy=False, end_id=None, seed=0):
    contexts = np.asarray(contexts, np.int32)
    uniforms = np.random.default_rng(seed).random((len(contexts), 2 * length))
    rows = tf.fill([len(contexts)], greedy)
    view = interface_of(model)
    return trajectories(view, contexts, tf.constant(uniforms), rows, end_id), uniforms


def by_loops(model, context, uniforms, greedy, end_id):
    """One row: pieces of at most L tokens, each by inverting the distribution."""
    tokens, pieces = list(context), [[]]
    for uniform in uniforms:
        probs = tf.nn.softmax(model(np.array([tokens])))[0, -1].numpy()
        token = int(np.sum(np.cumsum(probs) <= uniform))
        token = int(np.argmax(probs)) if greedy else token
        tokens.append(token)
        pieces[-1].append(token)
        if token == end_id or len(pieces[-1]) == len(uniforms) // 2:
            pieces.append([])
        if len(pieces) == 3:
            break
    return pieces[:2]


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("end_id", [None, 0])
def test_what_a_model_says(greedy, end_id):
    model = wrapped().model
    contexts = [[1, 2, 0, -1], [3, 0, -1, -1], [2, 2, 1, 0], [1, -1, -1, -1]]
    found, uniforms = said(model, contexts, greedy=greedy, end_id=end_id)
    for row, context in enumerate(contexts):
        kept = [token for token in context if token >= 0]
        first, second = by_loops(model, kept, uniforms[row], greedy, end_id)
        for piece, expected in (
            (found.first, first),
            (found.second, second),
            (found.both, first + second),
        ):
            values = piece[row].numpy()
            np.testing.assert_array_equal(values[values >= 0], expected)
            assert np.all(values[len(expected) :] == -1)


# === Gradient ===


def test_expected_gradient_is_that_of_the_models_own_objective():
    """One token a piece: all outcomes behind two contexts can be counted."""
    bmi = wrapped()
    contexts = np.array([[1], [3]], np.int32)
    cells = np.array(list(itertools.product(range(V), repeat=2)))
    variables = [v.value for v in bmi.model.trainable_variables]
    scores = np.array(bmi.pair_scores(cells[:, :1], cells[:, 1:])).reshape(V, V)
    with tf.GradientTape() as tape:
        joints = []
        for context in contexts:
            rows = np.concatenate([np.tile(context, [len(cells), 1]), cells], axis=1)
            log_probs = tf.nn.log_softmax(bmi.model(rows))
            each = tf.gather(log_probs[:, :2], cells, batch_dims=2)
            joints.append(tf.reshape(tf.exp(tf.reduce_sum(each, axis=1)), [V, V]))
        # (x1, y1) behind the first context, (x2, y2) behind the second.
        first, second = joints
        apart = tf.reduce_sum(first, 1)[:, None] * tf.reduce_sum(second, 0)[None]
        positive, negative = (
            np.vectorize(softplus)(each) for each in (-scores, scores)
        )
        objective = -tf.reduce_sum(first * positive) - tf.reduce_sum(apart * negative)
    expected = np.concatenate(
        [np.ravel(tf.convert_to_tensor(g)) for g in tape.gradient(objective, variables)]
    )
    draws, blocks = 2000, []
    source = SegmentPairs(TEXT, draws, segment=1)
    (_, _, pairs), *_ = batch(source, rows=1)
    flat = type(pairs)(*(values[0] for values in pairs))
    pairs = flat._replace(
        first=tf.tile(contexts[:1], [draws, 1]),
        negatives=tf.tile(contexts[1:][None], [draws, 1, 1]),
    )
    for _ in range(20):
        with tf.GradientTape() as tape:
            term, rewards = self_critical(bmi, pairs)
            loss = tf.reduce_mean(term.loss)
        found = tape.gradient(loss, variables)
        blocks.append(
            np.concatenate([np.ravel(tf.convert_to_tensor(g)) for g in found])
        )
        assert float(tf.reduce_mean(rewards)) == pytest.approx(
            float(objective), abs=0.05
        )
    mean = np.mean(blocks, axis=0)
    error = np.std(blocks, axis=0, ddof=1) / np.sqrt(len(blocks))
    assert np.all(np.abs(mean + expected) < 4.5 * error + 1e-9)
    # Descent raises the objective, by far more than the noise.
    assert -mean @ expected > 0.8 * (expected @ expected)


def test_nothing_reaches_the_discriminator():
    bmi = wrapped(dropout=0.5, end_id=0)
    bmi.set_phase(1)
    element = batch(SentencePairs(TEXT, 0, 4, most_tokens=5))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(bmi.objective_terms(*element, True)["rl"].loss)
    theta = [v.value for v in bmi.discriminator.trainable_variables]
    assert all(gradient is None for gradient in tape.gradient(loss, theta))


def test_training_logs_rewards():
    bmi = wrapped("float32", end_id=0)
    bmi.compile(keras.optimizers.SGD(0.1))
    bmi.set_phase(1)
    element = batch(SentencePairs(TEXT, 0, 4, most_tokens=5))
    logs = bmi.train_on_batch(*element, return_dict=True)
    assert {"rl", "reward", "mutual_information"} <= set(logs)
    assert "effective_sample_size" not in logs
    # At D = 0 it is -2 ln 2.
    assert -4 < logs["reward"] < 0


# === Penalties and mistakes ===


def test_penalties_of_the_two_parts():
    """Rate 1 and no other gradient: weights shrink by their penalty."""
    bmi = wrapped("float32", weight=0.0, l2=0.25, discriminator_l2=0.5, phase_two=None)
    bmi.compile(keras.optimizers.SGD(0.0), keras.optimizers.SGD(1.0))
    before = bmi.discriminator.get_weights()
    bmi.optimizer.clip_norms.clear()
    bmi.train_on_batch(*batch(SegmentPairs(TEXT, 4, segment=3)))
    for old, new in zip(before, bmi.discriminator.get_weights(), strict=True):
        np.testing.assert_allclose(new, 0.5 * old, rtol=1e-5, atol=1e-7)
    assert bmi.l2_of(bmi.model.trainable_variables[0]) == 0.25


def test_it_needs_states():
    inputs = keras.Input((None,), dtype="int32")
    hidden = keras.layers.Embedding(V, 4, name="low")(inputs)
    functional = keras.Model(inputs, keras.layers.Dense(V)(hidden))
    with pytest.raises(ValueError, match="needs states; Functional has none"):
        BootstrappedMutualInformation(
            functional, phase_two="rl", hidden_layers=("low",)
        )


@pytest.mark.landing
def test_two_replicas_equal_one(two_replicas):
    (tokens, start, pairs), targets, weights = batch(
        SentencePairs(TEXT, 0, 4, most_tokens=5)
    )

    def make():
        bmi = wrapped("float32", dropout=0.3, end_id=0, weight=1.0)
        bmi.set_phase(1)
        return bmi

    assert_two_replicas_equal_one(
        two_replicas, make, [((tokens, start, tuple(pairs)), targets, weights)] * 2
    )
