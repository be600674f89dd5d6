"""Dynamic evaluation, Monte Carlo dropout, temperature, and all together."""

from __future__ import annotations

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import evaluation
from rlm_tf.evaluation.log_probs import scorer
from rlm_tf.layers import MogrifierLSTMCell
from rlm_tf.models import RecurrentLanguageModel, RegularizedLanguageModel
from rlm_tf.training.state_variables import read, state_variables

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager

V, EOS, N = 9, 3, 47


@pytest.fixture(scope="module")
def tokens():
    return np.random.default_rng(4).integers(V, size=N).astype(np.int32)


@pytest.fixture(scope="module")
def model():
    return RegularizedLanguageModel(
        V,
        MogrifierLSTMCell(5, 2, 2, state_dropout=0.3),
        2,
        input_dropout=0.2,
        layer_dropout=0.2,
        output_dropout=0.4,
        jit_loop=False,
        seed=3,
        dropout_samples=2,
    )


@pytest.fixture(autouse=True)
def nothing_changes(model):
    """Whatever a test does, weights, rates and seeds are the same afterwards."""
    before = read(state_variables(model))
    rates = [layer.rate for layer in model.layer_dropouts]
    yield
    assert [layer.rate for layer in model.layer_dropouts] == rates
    after = read(state_variables(model))
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array, err_msg=name)


def log_probs(model, tokens, batch_size=1, window=6, **kwargs):
    return evaluation.target_log_probs(
        model, tokens, batch_size, window, prefix=EOS, **kwargs
    )


def statistics(model, tokens, **kwargs):
    return evaluation.gradient_statistics(model, tokens, 2, 5, prefix=EOS, **kwargs)


# === Dynamic evaluation ===


def rows_and_windows(tokens, batch_size, window):
    """Yields (inputs, targets, weights) of the windows, cut by hand."""
    length = -(-len(tokens) // batch_size)
    padded = np.full(batch_size * length, EOS)
    padded[: len(tokens)] = tokens
    counts = (np.arange(batch_size * length) < len(tokens)).reshape(batch_size, length)
    inputs = np.concatenate([[EOS], padded[:-1]]).reshape(batch_size, length)
    targets = padded.reshape(batch_size, length)
    for first in range(0, length, window):
        part = slice(first, first + window)
        yield inputs[:, part], targets[:, part], counts[:, part]


def loss_and_gradients(model, window, states):
    inputs, targets, counts = window
    variables = [v.value for v in model.trainable_variables]
    with tf.GradientTape() as tape:
        features, states = model.run_window(tf.constant(inputs), states, False)
        nll = model.nll(features, tf.constant(targets))
        loss = tf.reduce_sum(nll * counts) / len(inputs)
    gradients = tape.gradient(loss, variables)
    return nll.numpy(), [tf.convert_to_tensor(g) for g in gradients], states


def test_statistics_are_root_mean_squares_of_window_gradients(model, tokens):
    squares, states, number = 0.0, model.zero_states(2), 0
    for window in rows_and_windows(tokens, 2, 5):
        _, gradients, states = loss_and_gradients(model, window, states)
        squares = squares + np.array([np.sum(g**2) for g in gradients])
        number += 1
    found = statistics(model, tokens)
    assert found.num_windows == number == 5
    sums = [np.sum(root.astype(np.float64) ** 2) for root in found.root_mean_squares]
    np.testing.assert_allclose(sums, squares / number, rtol=1e-4)
    few = statistics(model, tokens, most_windows=2)
    assert few.num_windows == 2


@pytest.mark.parametrize("batch_size", [1, 3])
def test_dynamic_evaluation_scores_and_then_learns(model, tokens, batch_size):
    rms = statistics(model, tokens)
    rate, decay, epsilon = 0.02, 0.3, 1e-4
    roots = rms.root_mean_squares
    mean = np.mean(np.concatenate([root.ravel() for root in roots]))
    start = [v.numpy() for v in model.trainable_variables]
    expected, states = [], model.zero_states(batch_size)
    try:
        for window in rows_and_windows(tokens, batch_size, 6):
            nll, gradients, states = loss_and_gradients(model, window, states)
            expected.append(np.where(window[2], -nll, np.nan))
            for v, g, s, theta_0 in zip(
                model.trainable_variables, gradients, roots, start, strict=True
            ):
                theta = v.numpy()
                back = np.minimum(1, decay * s / mean) * (theta_0 - theta)
                v.assign(theta - rate * g.numpy() / (s + epsilon) + back)
        moved = [
            np.abs(v.numpy() - s).max()
            for v, s in zip(model.trainable_variables, start, strict=True)
        ]
    finally:
        for v, theta_0 in zip(model.trainable_variables, start, strict=True):
            v.assign(theta_0)
    assert min(moved) > 0
    expected = np.concatenate(expected, axis=1).ravel()
    expected = expected[~np.isnan(expected)]
    assert len(expected) == N
    dynamic = evaluation.DynamicEvaluation(rms, rate, decay, epsilon)
    found = log_probs(model, tokens, batch_size, dynamic=dynamic)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    assert np.any(np.abs(found - log_probs(model, tokens, batch_size)) > 0.01)
    # No learning, no decay: the static model.
    still = evaluation.DynamicEvaluation(rms, 0.0, 0.0)
    np.testing.assert_allclose(
        log_probs(model, tokens, batch_size, dynamic=still),
        log_probs(model, tokens, batch_size),
        rtol=1e-5,
    )


def test_repeated_text_becomes_likelier(model):
    text = np.tile([1, 5, 2, 7], 12)
    rms = statistics(model, text)
    dynamic = evaluation.DynamicEvaluation(rms, 0.02, 0.0, 1e-3)
    found = log_probs(model, text, window=4, dynamic=dynamic)
    assert found[-8:].mean() > found[:8].mean() + 0.5


def test_errors_put_the_weights_back(model, tokens):
    dynamic = evaluation.DynamicEvaluation(statistics(model, tokens), 0.1)
    with pytest.raises(RuntimeError, match="stop"), dynamic.of(model):
        model.trainable_variables[0].assign_add(
            tf.ones_like(model.trainable_variables[0])
        )
        raise RuntimeError("stop")


def test_any_keras_model_is_evaluated_dynamically(tokens):
    logits = keras.Sequential([keras.layers.Embedding(V, 4), keras.layers.Dense(V)])
    logits(tokens[None])
    before = logits.get_weights()
    rms = statistics(logits, tokens)
    dynamic = evaluation.DynamicEvaluation(rms, 0.05)
    changed = log_probs(logits, tokens, dynamic=dynamic)
    assert np.any(changed != log_probs(logits, tokens))
    for a, b in zip(logits.get_weights(), before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.landing
@pytest.mark.parametrize("dtype", ["float64", "mixed_bfloat16"])
def test_dynamic_evaluation_in_other_precisions(tokens, dtype):
    cell = MogrifierLSTMCell(5, 2, 2, dtype=dtype)
    model = RegularizedLanguageModel(V, cell, jit_loop=False, seed=1, dtype=dtype)
    before = log_probs(model, tokens)
    rms = statistics(model, tokens)
    exact = dtype == "float64"
    wanted = np.float64 if exact else np.float32
    assert {root.dtype.type for root in rms.root_mean_squares} == {wanted}
    single = RegularizedLanguageModel(
        V, MogrifierLSTMCell(5, 2, 2), jit_loop=False, seed=1
    )
    log_probs(single, tokens)
    for variable, source in zip(
        single.trainable_variables, model.trainable_variables, strict=True
    ):
        variable.assign(tf.cast(source.value, tf.float32))
    dynamic = evaluation.DynamicEvaluation(statistics(single, tokens), 0.02, 0.1, 1e-2)
    expected = log_probs(single, tokens, dynamic=dynamic)
    dynamic = evaluation.DynamicEvaluation(rms, 0.02, 0.1, 1e-2)
    found = log_probs(model, tokens, dynamic=dynamic)
    assert np.abs(found - before).max() > 0.1
    np.testing.assert_allclose(found, expected, atol=1e-4 if exact else 0.1)
    np.testing.assert_array_equal(log_probs(model, tokens), before)


@pytest.mark.landing
def test_running_away_is_told(model, tokens):
    dynamic = evaluation.DynamicEvaluation(statistics(model, tokens), 1e38, 0.0, 1e-5)
    for call in (evaluation.evaluate, evaluation.search_temperature):
        with pytest.raises(ValueError, match=r"diverged before token \d+: lower its"):
            call(model, tokens, 1, 6, prefix=EOS, dynamic=dynamic)


# === Monte Carlo dropout ===


def test_probabilities_are_averaged_over_whole_passes(model, tokens):
    monte_carlo = evaluation.MonteCarloDropout(3, seed=8)
    found = log_probs(model, tokens, 2, monte_carlo=monte_carlo)
    samples = []
    with monte_carlo.of(model):
        for _ in range(3):
            states, values = model.zero_states(2), []
            for inputs, targets, counts in rows_and_windows(tokens, 2, 6):
                # The library reads whole windows, the last one padded.
                missing = 6 - inputs.shape[1]
                pad = [(0, 0), (0, missing)]
                padded = tf.constant(np.pad(inputs, pad, constant_values=EOS))
                features, states = model.forward(padded, states, training=True)
                probs = tf.nn.softmax(model.output_logits(features)).numpy()
                probs = probs[:, : inputs.shape[1]]
                chosen = np.take_along_axis(probs, targets[..., None], 2)[..., 0]
                values.append(np.where(counts, chosen, np.nan))
            joined = np.concatenate(values, axis=1).ravel()
            samples.append(joined[~np.isnan(joined)])
    assert np.any(samples[0] != samples[1])
    np.testing.assert_allclose(np.exp(found), np.mean(samples, axis=0), rtol=1e-4)


@pytest.mark.graph
def test_seeds_repeat_and_scale_matters(model, tokens):
    def run(**options):
        monte_carlo = evaluation.MonteCarloDropout(2, **options)
        return log_probs(model, tokens, monte_carlo=monte_carlo)

    np.testing.assert_array_equal(run(seed=1), run(seed=1))
    assert np.any(run(seed=1) != run(seed=2))
    plain = log_probs(model, tokens)
    little = np.abs(run(rate_scale=0.01) - plain).mean()
    assert little < np.abs(run() - plain).mean()


@pytest.mark.graph
@pytest.mark.landing
def test_each_sample_adapts_from_the_trained_weights(model, tokens):
    """The mean over two samples is that of two passes, each with its own masks."""
    dynamic = evaluation.DynamicEvaluation(statistics(model, tokens), 0.02)
    both = evaluation.MonteCarloDropout(2, seed=5)
    found = log_probs(model, tokens, dynamic=dynamic, monte_carlo=both)
    passes = []
    with evaluation.MonteCarloDropout(1, seed=5).of(model):
        for _ in range(2):
            # The masks go on from the first pass to the second, the weights do not.
            ways = {"monte_carlo": Untouched(), "dynamic": dynamic}
            with scorer(model, 1, 6, prefix=EOS, **ways) as score:
                passes.append(score(tokens))
    expected = np.logaddexp(*passes) - np.log(2)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    # What moves the weights moves the results.
    static = log_probs(model, tokens, monte_carlo=both)
    assert np.abs(found - static).max() > 1e-3


class Untouched(evaluation.MonteCarloDropout):
    """Dropout as it is: neither rates nor seeds change."""

    def __init__(self):
        super().__init__(1)

    @contextlib.contextmanager
    def of(self, model):
        yield lambda: None


# === Temperature ===


def test_temperature_divides_logits(model, tokens):
    inputs = np.concatenate([[EOS], tokens[:-1]])[None]
    logits = model(inputs).numpy()[0] / 0.8
    expected = tf.nn.log_softmax(logits).numpy()[np.arange(N), tokens]
    found = log_probs(model, tokens, temperature=0.8)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.graph
def test_search_finds_the_best_of_the_grid(tokens):
    flat = RecurrentLanguageModel(V, 5, 1, initializer_scale=2.0, jit_loop=False)
    best = evaluation.search_temperature(flat, tokens, 1, 6, prefix=EOS)
    nats = {
        t: evaluation.evaluate(flat, tokens, 1, 6, prefix=EOS, temperature=t)
        for t in [1 / (1.06 - 0.02 * k) for k in range(14)]
    }
    assert nats[best].nats_per_token == min(n.nats_per_token for n in nats.values())
    # Far too sure of itself: the flattest distribution wins.
    np.testing.assert_allclose(best, 1 / 0.8)


@pytest.mark.landing
@pytest.mark.graph
def test_evaluate_combines_everything(model, tokens):
    """The temperature is searched with the same masks, but with fixed weights."""
    ways = {
        "dynamic": evaluation.DynamicEvaluation(statistics(model, tokens), 0.02),
        "monte_carlo": evaluation.MonteCarloDropout(2, 0.8),
    }
    best = evaluation.search_temperature(
        model, tokens[:20], 1, 6, prefix=EOS, monte_carlo=ways["monte_carlo"]
    )
    found = evaluation.evaluate(
        model, tokens, 1, 6, prefix=EOS, temperature_from=tokens[:20], **ways
    )
    expected = log_probs(model, tokens, temperature=best, **ways)
    np.testing.assert_allclose(found.nats_per_token, -expected.mean(), rtol=1e-6)
    assert found.num_tokens == len(expected) == N


@pytest.mark.graph
def test_a_search_sees_the_same_masks_at_every_temperature(model, tokens):
    monte_carlo = evaluation.MonteCarloDropout(2)
    with scorer(model, 1, 6, prefix=EOS, monte_carlo=monte_carlo) as score:
        first, _, again = (score(tokens, heat) for heat in (1.1, 0.9, 1.1))
    np.testing.assert_array_equal(first, again)
    others = evaluation.MonteCarloDropout(2, seed=1)
    assert np.any(
        first != log_probs(model, tokens, temperature=1.1, monte_carlo=others)
    )


def test_moving_statistics_are_what_they_were(tokens):
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Embedding(V, 4),
            layers.BatchNormalization(),
            layers.Dropout(0.3),
            layers.Dense(V),
        ]
    )
    model(tokens[np.newaxis])
    before = model.get_weights()
    log_probs(model, tokens, monte_carlo=evaluation.MonteCarloDropout(2))
    for expected, found in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)


# === Mistakes ===


def test_mistakes_are_named(model, tokens):
    rms = statistics(model, tokens)
    with pytest.raises(ValueError, match="`temperature` or `temperature_from`"):
        evaluation.evaluate(
            model, tokens, 1, 6, prefix=EOS, temperature=0.9, temperature_from=tokens
        )
    with pytest.raises(ValueError, match="`batch_size` must be an integer >= 1"):
        evaluation.gradient_statistics(model, tokens, 0, 5, prefix=EOS)
    with pytest.raises(ValueError, match="`learning_rate` must be finite"):
        evaluation.DynamicEvaluation(rms, -1.0)
    other = RecurrentLanguageModel(V, 5, 1)
    with pytest.raises(ValueError, match="weights of other shapes"):
        log_probs(other, tokens, dynamic=evaluation.DynamicEvaluation(rms))
    with pytest.raises(ValueError, match="has no dropout"):
        log_probs(other, tokens, monte_carlo=evaluation.MonteCarloDropout(2))
    with pytest.raises(ValueError, match=r"makes a rate of 0\.4 reach 1"):
        log_probs(
            model, tokens, monte_carlo=evaluation.MonteCarloDropout(2, rate_scale=2.5)
        )
    with pytest.raises(ValueError, match="`temperature` must be positive"):
        log_probs(model, tokens, temperature=0.0)
