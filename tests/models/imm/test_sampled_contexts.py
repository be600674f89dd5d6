"""The published sampler inside the training step."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.models import SampledContexts
from tests.models.imm import imm_fixtures as fixtures
from tests.references import imm_reference as reference

# A few steps each: tracing graphs took most of the time.
pytestmark = pytest.mark.eager


def _element(step=2, batch_size=4, window=10):
    batches = fixtures.batches(None, batch_size, window)
    data = list(batches.dataset().take(step + 1))
    return data[step]


def _contexts(**options):
    return SampledContexts(fixtures.stream(), **{"k": 3, "window": 6, **options})


@pytest.mark.parametrize(
    ("order", "every", "options"),
    [
        (2, 1, {}),
        pytest.param(3, 1, {}, marks=pytest.mark.landing),
        (2, 2, {}),
        pytest.param(2, 1, {"initial_state": "zero"}, marks=pytest.mark.landing),
        (3, 2, {"truncated": True}),
    ],
)
def test_crosstalk_equals_direct_gradient_in_double_precision(order, every, options):
    """With `every` 2, the second of the two steps has one sample."""
    data = fixtures.batches().dataset().take(2)
    moved = {}
    for gradient in ("direct", "crosstalk"):
        model = fixtures.wrapper(
            _contexts(**options),
            model=fixtures.language_model(dtype="float64"),
            restricted=fixtures.restricted_model(order),
            gradient=gradient,
            every=every,
            coefficient=2.0,
        )
        before = fixtures.flat_weights(model)
        logs = model.fit(data, verbose=0, shuffle=False).history
        moved[gradient] = (before - fixtures.flat_weights(model), logs["imm"][0])
    np.testing.assert_allclose(moved["direct"][0], moved["crosstalk"][0], atol=1e-10)
    np.testing.assert_allclose(moved["direct"][1], moved["crosstalk"][1], rtol=1e-6)


def test_main_and_induced_gradients_are_clipped_separately():
    element = _element(0)
    plain = fixtures.step_gradient(
        fixtures.compiled(fixtures.language_model()), element
    )
    both = fixtures.step_gradient(
        fixtures.wrapper(_contexts(), coefficient=1.0), element
    )
    own = both - plain
    found = fixtures.step_gradient(
        fixtures.wrapper(_contexts(), coefficient=0.3, clip_norm=0.05), element
    )
    expected = 0.05 * plain / np.linalg.norm(plain)
    expected += 0.3 * 0.05 * own / np.linalg.norm(own)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("gradient", ["direct", "crosstalk"])
def test_the_carried_state_is_never_touched(gradient):
    data = fixtures.batches().dataset().take(3)
    model = fixtures.wrapper(_contexts(), gradient=gradient)
    model.compile(keras.optimizers.SGD(0.0))
    model.fit(data, verbose=0, shuffle=False)
    plain = fixtures.compiled(fixtures.language_model(), 0.0)
    plain.fit(data, verbose=0, shuffle=False)
    for found, expected in zip(
        tf.nest.flatten(model.model.carried_states(training=True)),
        tf.nest.flatten(plain.carried_states(training=True)),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)


def test_dropout_does_not_act_in_the_induced_branch():
    """The induced loss of the first batch is the same with and without dropout."""
    data = fixtures.batches().dataset().take(1)
    losses = []
    for dropout in (0.0, 0.6):
        model = fixtures.wrapper(
            _contexts(), model=fixtures.language_model(dropout=dropout)
        )
        losses.append(model.fit(data, verbose=0, shuffle=False).history["imm"][0])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-6)


def test_one_sample_is_the_noising_loss_of_the_sampled_window():
    """With one occurrence of each context there is nothing to draw."""
    words = np.array([0, 1, 2, 3, 4, 5, 6, 0], np.int32)
    contexts = SampledContexts(words, k=1, window=1, initial_state="zero")
    model = fixtures.wrapper(contexts)
    # The window reads 0 1 2 3 4 5.
    element = next(iter(fixtures.batches(words[1:7], 1, 6).dataset()))
    np.testing.assert_array_equal(element[0][0], [[0, 1, 2, 3, 4, 5]])
    restricted = model.restricted_models[0]
    wanted = np.arange(6)
    logits = model.model(wanted[:, None])[:, 0]
    target = restricted.probs_numpy(wanted)
    expected = -np.mean(np.sum(target * tf.nn.log_softmax(logits).numpy(), axis=1))
    logs = model.fit(tf.data.Dataset.from_tensors(element), verbose=0, shuffle=False)
    np.testing.assert_allclose(logs.history["imm"], [expected], rtol=1e-5)


def test_truncated_windows_have_the_length_of_the_position():
    """At position i the last i + 1 tokens are read, left-aligned."""
    contexts = _contexts(truncated=True, window=10)
    ends = tf.constant([20, 30, 40])
    fixtures.wrapper(contexts)
    windows, last = contexts._windows(ends, tf.constant([0, 3, 9]))
    stream = fixtures.stream()
    np.testing.assert_array_equal(last, [0, 3, 9])
    assert windows[0, 0] == stream[20]
    np.testing.assert_array_equal(windows[1, :4], stream[27:31])
    np.testing.assert_array_equal(windows[2], stream[31:41])


def test_steps_between_have_one_sample():
    """`every=2`: k samples, one sample, k samples."""
    model = fixtures.wrapper(_contexts(), every=2)
    data = fixtures.batches().dataset().take(3)
    counts = []
    for element in data:
        logs = model.fit(
            tf.data.Dataset.from_tensors(element), verbose=0, shuffle=False
        )
        counts.append(logs.history["imm_count"][0] / logs.history["imm_coverage"][0])
    np.testing.assert_allclose(counts, [3, 1, 3], rtol=1e-5)


@pytest.mark.parametrize(
    "options",
    [{"gradient": "direct"}, {"gradient": "crosstalk"}, {"variant": "authors"}],
)
def test_nothing_happens_before_the_start_rule_lets_it(options):
    element = _element(0)
    model = fixtures.wrapper(_contexts(), **options)
    model.active.assign(0.0)
    plain = fixtures.step_gradient(
        fixtures.compiled(fixtures.language_model()), element
    )
    np.testing.assert_allclose(fixtures.step_gradient(model, element), plain, atol=1e-6)


@pytest.mark.landing
def test_draws_are_a_function_of_seed_and_step():
    def run(seed):
        model = fixtures.wrapper(_contexts(seed=seed))
        data = fixtures.batches().dataset().take(3)
        model.fit(data, verbose=0, shuffle=False)
        return fixtures.flat_weights(model)

    first = run(1)
    np.testing.assert_array_equal(run(1), first)
    assert np.abs(run(2) - first).max() > 1e-6


def test_positions_and_steps_have_draws_of_their_own():
    """Chi-square of what the sampler draws for one word, over positions and steps."""
    contexts = _contexts(k=3)
    fixtures.wrapper(contexts)
    index, word = contexts.indices[0], tf.fill([40, 1], 2)
    found = []
    for step in range(60):
        randoms = contexts._randoms(
            tf.constant([4, 10]), tf.constant(step, tf.int64), 0
        )
        found.append(index.draw(word, randoms)[0].numpy())
    found = np.array(found)
    ends, observed = np.unique(found, return_counts=True)
    number = index.look_up(word)[1].numpy()[0]
    assert len(ends) == number
    expected = found.size / number
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert statistic < number - 1 + 4 * np.sqrt(2 * (number - 1))
    # Draws of two positions, steps or samples coincide by chance only.
    chance = 1 / number + 4 * np.sqrt(1 / number / 2000)
    assert np.mean(found[:, :-1] == found[:, 1:]) < chance
    assert np.mean(found[:-1] == found[1:]) < chance
    assert np.mean(found[..., :-1] == found[..., 1:]) < chance


def test_coverage_is_of_positions_that_could_have_samples():
    """Neither padding nor the start of a window, where a trigram's context is cut."""
    x, y, _ = _element(0)
    weights = np.full(y.shape, 0.5)
    weights[:, 6:] = 0
    model = fixtures.eager(_contexts(), restricted=fixtures.restricted_model(3))
    logs = fixtures.step(model, (x, y, weights))
    assert logs["imm_coverage"] == [1.0] and logs["imm_count"] == [3.0]


def test_window_must_hold_the_short_context():
    with pytest.raises(ValueError, match="whole short context of 2 words, found 1"):
        fixtures.wrapper(_contexts(window=1), restricted=fixtures.restricted_model(3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "`k` must be an integer >= 1, found 0"),
        ({"k": 1.5}, "`k` must be an integer >= 1, found 1.5"),
        ({"window": 0}, "`window` must be an integer >= 1"),
        ({"seed": "1"}, "`seed` must be an integer >= 0, found '1'"),
        ({"initial_state": "warm"}, "`initial_state` must be"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=f"SampledContexts: .*{message}"):
        _contexts(**options)


@pytest.mark.parametrize(
    ("initial_state", "gradient", "every"),
    [
        ("carried", "direct", 1),
        ("zero", "direct", 1),
        ("carried", "direct", 2),
        ("carried", "crosstalk", 2),
    ],
)
def test_loss_is_that_of_windows_run_by_hand(initial_state, gradient, every):
    """Eq. (21) in float64: every drawn window on its own, from its row's state.

    The step is the second: with `every` 2 it has the first of the k samples alone.
    """
    stream, k, window = fixtures.stream(), 3, 4
    contexts = SampledContexts(stream, k, window, initial_state=initial_state, seed=9)
    language_model = fixtures.language_model(dtype="float64")
    model = fixtures.wrapper(
        contexts, model=language_model, gradient=gradient, every=every
    )
    model.compile(keras.optimizers.SGD(0.0))
    first, second = fixtures.batches().dataset().take(2)
    model.fit(tf.data.Dataset.from_tensors(first), verbose=0, shuffle=False)
    (tokens, start), y, _ = second
    assert not np.any(start)
    # Weight 0 is what padding has.
    weights = np.random.default_rng(2).choice([0.0, 0.5, 1.0], y.shape)
    rows, steps = tokens.shape
    randoms = contexts._randoms(tf.shape(tokens), tf.constant(1, tf.int64), 0)
    flat = tf.reshape(tokens, [-1, 1])
    ends, available = contexts.indices[0].draw(flat, randoms)
    carried = language_model.starting_states(start, training=True)
    target = model.restricted_models[0].probs_numpy(flat[:, 0].numpy())
    losses = []
    for row in range(rows):
        state = tf.nest.map_structure(lambda s, row=row: s[row : row + 1], carried)
        if initial_state == "zero":
            state = language_model.zero_states(1)
        for step in range(steps):
            position = row * steps + step
            assert available[position] > 0
            predictions = []
            for end in ends.numpy()[position, : k if every == 1 else 1]:
                text = stream[end - window + 1 : end + 1]
                assert text[-1] == tokens[row, step]
                features, _ = language_model.forward(text[None], state)
                logits = language_model.output_logits(features)[0, -1].numpy()
                predictions.append(reference.softmax(logits))
            induced = np.mean(predictions, axis=0)
            losses.append(reference.imm_loss(target[position], induced))
    logs = fixtures.step(model, ((tokens, start), y, weights))
    expected = np.average(losses, weights=weights.ravel())
    np.testing.assert_allclose(logs["imm"], [expected], rtol=1e-5)


def test_two_restricted_models_have_draws_of_their_own():
    bigram = fixtures.restricted_model()
    same = fixtures.eager(
        _contexts(), restricted=[(bigram, 0.2), (fixtures.restricted_model(), 0.2)]
    )
    logs = fixtures.step(same, _element(0))
    assert logs["imm_0"] != logs["imm_1"]
    np.testing.assert_allclose(logs["imm_0"], logs["imm_1"], rtol=0.1)
