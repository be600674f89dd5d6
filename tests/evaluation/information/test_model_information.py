"""A model's own information: Markov models of which it is known, and recurrent ones."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from rlm_tf.evaluation import model_information
from rlm_tf.evaluation.information import model_information as module
from rlm_tf.layers import LSTMCell
from rlm_tf.models import RegularizedLanguageModel
from tests.references.bmi_reference import ORACLE

_CASE = ORACLE["markov_source"]


def markov_model(transitions):
    """A Keras model whose next token depends on the last one alone."""
    size = len(transitions)
    tokens = keras.Input((None,), dtype="int32")
    layer = keras.layers.Embedding(size, size)
    model = keras.Model(tokens, layer(tokens))
    layer.set_weights([np.log(transitions)])
    return model


def test_bounds_of_a_markov_model_lie_about_the_truth():
    case = _CASE["from_prefix"]
    found = model_information(
        markov_model(_CASE["transitions"]),
        segment=case["segment"],
        pairs=300,
        prefix=case["prefix"],
        seed=1,
    )
    truth = case["information"]
    assert found.lower - 4 * found.lower_error < truth
    assert truth < found.upper + 4 * found.upper_error
    assert found.lower <= found.upper
    # With 300 contexts the two are nearly the same.
    assert found.upper - found.lower < 0.02
    assert found.lower == pytest.approx(truth, abs=4 * found.lower_error + 0.02)
    assert found.conditional_entropy == pytest.approx(
        case["conditional_entropy"], abs=0.15
    )


def test_independent_tokens_share_nothing():
    found = model_information(
        markov_model(np.full((4, 4), 0.25)), segment=2, pairs=5, prefix=0, seed=0
    )
    assert found.lower == pytest.approx(0.0, abs=1e-6)
    assert found.upper == pytest.approx(0.0, abs=1e-6)
    assert found.conditional_entropy == pytest.approx(2 * np.log(4), rel=1e-6)


@pytest.mark.parametrize("segment", [1, 3])
def test_a_recurrent_model_by_loops(segment):
    """Every continuation scored on its own, from the prefix on."""
    model = RegularizedLanguageModel(7, LSTMCell(5), 1, seed=2, jit_loop=False)
    for weight in model.trainable_variables:
        weight.assign(3 * weight)
    options = {"segment": segment, "pairs": 4, "prefix": 0, "seed": 3}
    found = model_information(model, **options)
    from rlm_tf.generation import generate

    prompts = np.zeros((4, 1), np.int32)
    samples = generate(model, prompts, 2 * segment, seed=3).to_tensor().numpy()
    matrix = np.empty((4, 4))
    for i in range(4):
        for j in range(4):
            text = [0, *samples[i, :segment], *samples[j, segment:]]
            log_probs = keras.ops.log_softmax(model(np.array([text])))[0].numpy()
            places = range(segment, 2 * segment)
            matrix[i, j] = sum(log_probs[p, text[p + 1]] for p in places)
    joint = np.diag(matrix)
    expected = joint - np.log(np.mean(np.exp(matrix), axis=0))
    assert found.lower == pytest.approx(expected.mean(), abs=1e-5)
    assert found.lower_error == pytest.approx(expected.std(ddof=1) / 2, abs=1e-5)
    assert found.conditional_entropy == pytest.approx(-joint.mean(), rel=1e-5)
    apart = np.exp(matrix)[~np.eye(4, dtype=bool)].reshape(4, 3)
    # Row i of those left has the entries of context i, one for each other y.
    others = [
        np.mean([apart[i, j - (j > i)] for i in range(4) if i != j]) for j in range(4)
    ]
    assert found.upper == pytest.approx((joint - np.log(others)).mean(), abs=1e-5)


def test_mistakes():
    with pytest.raises(ValueError, match="`pairs` must be an integer >= 2"):
        model_information(
            markov_model(np.eye(2) + 1), segment=2, pairs=1, prefix=0, seed=0
        )
    model = RegularizedLanguageModel(7, LSTMCell(5), 1)
    with pytest.raises(ValueError, match=r"`prefix` must be .* \[0, 7\), found 9"):
        model_information(model, segment=2, pairs=2, prefix=9, seed=0)
    inputs = keras.Input((None,), dtype="int32")
    logits = keras.layers.Dense(3)(keras.layers.Embedding(3, 2)(inputs))
    with pytest.raises(ValueError, match=r"`prefix` must be .* \[0, 3\), found 7"):
        model_information(
            keras.Model(inputs, logits), segment=2, pairs=2, prefix=7, seed=0
        )


def test_a_little_at_a_time_is_the_same(monkeypatch):
    """Never more logits at once than are allowed, not of one context either."""
    model = RegularizedLanguageModel(7, LSTMCell(5), 1, seed=2, jit_loop=False)
    options = {"segment": 3, "pairs": 5, "prefix": 0, "seed": 3}
    whole = model_information(model, **options)
    # Two pieces of two tokens.
    monkeypatch.setattr(module, "_MOST_LOGITS", 2 * 2 * 7)
    np.testing.assert_allclose(model_information(model, **options), whole, rtol=1e-6)
