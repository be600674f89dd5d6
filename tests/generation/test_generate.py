"""Tests of generation: the same text however it is computed, and the right law."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from rlm_tf.generation import generate
from rlm_tf.generation.stepwise import RecomputedModel, as_stepwise, read_tokens
from rlm_tf.models import RecurrentLanguageModel
from tests.references import generation as reference

V = 11


@pytest.fixture(scope="module")
def recurrent():
    return RecurrentLanguageModel(V, 6, 2, initializer_scale=0.9, dropout=0.5, seed=3)


@pytest.fixture(scope="module")
def convolutional():
    """A causal Keras model without states that sees three tokens."""
    keras.utils.set_random_seed(5)
    tokens = keras.Input([None], dtype="int32")
    x = keras.layers.Embedding(V, 8, embeddings_initializer="normal")(tokens)
    x = keras.layers.Conv1D(8, 3, padding="causal", activation="tanh")(x * 20.0)
    return keras.Model(tokens, keras.layers.Dense(V)(x * 3.0))


@pytest.fixture(params=["recurrent", "convolutional"])
def model(request):
    return request.getfixturevalue(request.param)


def lists(tokens):
    return [list(map(int, row)) for row in tokens.to_list()]


def greedy(model, prompt, number):
    """Runs the model on the whole text for every token."""
    text = list(prompt)
    for _ in range(number):
        logits = model(tf.constant([text], tf.int32), training=False)
        text.append(int(np.argmax(logits[0, -1])))
    return text[len(prompt) :]


PROMPTS = [[1, 4, 7, 2, 2, 9], [3], [0, 0, 5]]


def test_greedy_is_the_argmax_of_the_whole_text(model):
    prompts = tf.ragged.constant(PROMPTS)
    tokens = generate(model, prompts, 7, seed=0, temperature=0.0)
    assert lists(tokens) == [greedy(model, prompt, 7) for prompt in PROMPTS]
    assert tokens.dtype == tf.int32


@pytest.mark.landing
def test_tokens_follow_the_filtered_law(recurrent):
    prompt, number = [2, 5], 4000
    tokens = generate(
        recurrent, np.tile(prompt, (number, 1)), 1, seed=7, temperature=1.3, top_p=0.9
    )
    logits = recurrent(tf.constant([prompt]))[0, -1]
    probs = tf.nn.softmax(tf.cast(logits, tf.float64)).numpy()
    expected = reference.nucleus(reference.temperature(list(probs), 1.3), 0.9)
    counts = np.bincount(tokens.flat_values, minlength=V)
    statistic, freedom = reference.chi_square(counts, np.array(expected))
    assert statistic < scipy.stats.chi2.ppf(0.999, freedom)


@pytest.mark.parametrize(
    "wrong", [{"top_p": -0.1}, {"top_k": -1}, {"temperature": -1.0}]
)
def test_numbers_out_of_range_are_refused(recurrent, wrong):
    with pytest.raises(ValueError, match=f"`{next(iter(wrong))}` must be"):
        generate(recurrent, [[1]], 2, seed=1, **wrong)


@pytest.mark.landing
def test_second_token_follows_the_law_given_the_first(recurrent):
    tokens = generate(recurrent, np.full((6000, 1), 4), 2, seed=1).to_tensor().numpy()
    first = np.bincount(tokens[:, 0]).argmax()
    counts = np.bincount(tokens[tokens[:, 0] == first, 1], minlength=V)
    logits = recurrent(tf.constant([[4, first]]))[0, -1]
    statistic, freedom = reference.chi_square(counts, tf.nn.softmax(logits).numpy())
    assert counts.sum() > 300
    assert statistic < scipy.stats.chi2.ppf(0.999, freedom)


def test_seed_decides(model):
    prompts = np.array([[1, 2], [1, 2], [3, 4]])
    first = generate(model, prompts, 12, seed=1)
    assert lists(first) == lists(generate(model, prompts, 12, seed=1))
    assert lists(first) != lists(generate(model, prompts, 12, seed=2))
    assert lists(first)[0] != lists(first)[1]


def test_eager_equals_graph(model):
    @tf.function(
        input_signature=[
            tf.RaggedTensorSpec([None, None], tf.int32),
            tf.TensorSpec([], tf.int32),
            tf.TensorSpec([], tf.float32),
        ]
    )
    def compiled(prompts, max_tokens, top_p):
        return generate(model, prompts, max_tokens, seed=4, top_k=5, top_p=top_p)

    prompts = tf.ragged.constant(PROMPTS)
    for number in (9, 1, 0):
        eager = generate(model, prompts, number, seed=4, top_k=5, top_p=0.8)
        assert lists(compiled(prompts, number, 0.8)) == lists(eager)
        assert [len(row) for row in lists(eager)] == [number] * 3
    nobody = tf.RaggedTensor.from_row_splits(tf.zeros([0], tf.int32), [0])
    assert compiled(nobody, 3, 0.8).nrows() == 0


def test_text_does_not_depend_on_the_neighbours(model):
    seeds = [5, 6, 7]
    parameters = {"temperature": [0.5, 1.0, 2.0], "top_k": [3, 0, 7]}
    together = lists(
        generate(model, tf.ragged.constant(PROMPTS), 8, seed=seeds, **parameters)
    )
    for row, prompt in enumerate(PROMPTS):
        alone = generate(
            model,
            [prompt],
            8,
            seed=seeds[row],
            **{name: values[row] for name, values in parameters.items()},
        )
        assert lists(alone) == [together[row]]
    more = tf.ragged.constant([*PROMPTS, [1] * 20])
    with_more = generate(model, more, 8, seed=9)
    assert lists(with_more)[:3] == lists(
        generate(model, tf.ragged.constant(PROMPTS), 8, seed=9)
    )


def test_longer_text_starts_with_the_shorter(model):
    prompts = tf.ragged.constant(PROMPTS)
    short = lists(generate(model, prompts, 4, seed=2))
    long = lists(generate(model, prompts, 9, seed=2))
    assert [row[:4] for row in long] == short


def test_banned_tokens_are_never_drawn(recurrent):
    prompts = [[1, 2], [3, 4]]
    free = np.unique(lists(generate(recurrent, prompts, 60, seed=3)))
    assert len(free) > 3
    banned = free[:3].tolist()
    for temperature in (0.0, 1.0):
        options = {"temperature": temperature, "banned_tokens": banned}
        found = generate(recurrent, prompts, 60, seed=3, **options)
        assert not set(np.ravel(lists(found))) & set(banned)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be ids of tokens"):
        generate(recurrent, prompts, 1, seed=3, banned_tokens=[1000])


def test_stop_token_ends_a_row_only(recurrent):
    prompts = tf.ragged.constant(PROMPTS)
    free = lists(generate(recurrent, prompts, 30, seed=3))
    stop = free[1][2]
    stopped = lists(generate(recurrent, prompts, 30, seed=3, stop_token=stop))
    for whole, cut in zip(free, stopped, strict=True):
        assert cut == (whole[: whole.index(stop)] if stop in whole else whole)
    assert len(stopped[1]) <= 2


def test_wrapper_is_opened(recurrent):
    class Wrapper(keras.Model):
        wraps_language_model = True

        def __init__(self, model):
            super().__init__()
            self.model = model

    prompts = tf.ragged.constant(PROMPTS)
    assert lists(generate(Wrapper(recurrent), prompts, 5, seed=3)) == lists(
        generate(recurrent, prompts, 5, seed=3)
    )


# === Reading prompts ===


@pytest.mark.landing
def test_long_prompts_are_read_in_windows(recurrent, rng):
    rows = [rng.integers(V, size=n).tolist() for n in (300, 0, 17, 16, 1, 256)]
    states = read_tokens(
        recurrent, tf.ragged.constant(rows, tf.int32), recurrent.zero_states(6)
    )
    for i, row in enumerate(rows):
        expected = recurrent.zero_states(1)
        for token in row:
            _, expected = recurrent.forward(tf.constant([[token]]), expected)
        for state, value in zip(
            tf.nest.flatten(states), tf.nest.flatten(expected), strict=True
        ):
            np.testing.assert_allclose(state[i], value[0], atol=1e-5)


def test_recomputed_model_forgets_the_oldest(convolutional, rng):
    tokens = rng.integers(V, size=(2, 30)).astype(np.int32)
    stepwise = RecomputedModel(convolutional, 8)
    states = stepwise.zero_states(2)
    whole = convolutional(tokens).numpy()
    for first, last in ((0, 3), (3, 4), (4, 10), (10, 11), (11, 17), (17, 25)):
        features, states = stepwise.forward(tokens[:, first:last], states)
        # The model sees three tokens; the first of a window have two others before
        # them as long as the window leaves them room.
        np.testing.assert_allclose(
            features[:, -min(last - first, 6) :],
            whole[:, last - min(last - first, 6) : last],
            atol=1e-5,
        )
    np.testing.assert_array_equal(states[0], tokens[:, 17:25])


def test_limited_context_generates_on(convolutional):
    prompts = tf.ragged.constant([[1, 2, 3, 4, 5, 6, 7, 8, 9], [4]])
    limited = generate(convolutional, prompts, 20, seed=1, context_length=4)
    assert lists(limited) == lists(generate(convolutional, prompts, 20, seed=1))


# === Mistakes ===


def test_mistakes(recurrent, convolutional):
    with pytest.raises(ValueError, match="axes"):
        generate(recurrent, [1, 2], 3, seed=0)
    with pytest.raises(ValueError, match="integers"):
        generate(recurrent, [[1.5]], 3, seed=0)
    with pytest.raises(ValueError, match=r"max_tokens.*-1"):
        generate(recurrent, [[1]], -1, seed=0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least one token"):
        generate(recurrent, tf.ragged.constant([[1], []], tf.int32), 3, seed=0)
    with pytest.raises(ValueError, match="context_length"):
        as_stepwise(convolutional, None)
