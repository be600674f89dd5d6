"""Students beside teachers, token by token: by loops, by groups, mistakes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.evaluation import (
    MonteCarloDropout,
    expected_calibration_error,
    fidelity,
    frequency_groups,
    target_log_probs,
    token_fidelity,
)
from tests.models.imm import imm_fixtures as fixtures
from tests.references import imm_reference as reference

_V = fixtures.VOCABULARY


def test_numbers_by_hand_and_groups():
    teachers = [fixtures.language_model(seed=8), fixtures.language_model(seed=9)]
    student = fixtures.language_model(seed=5)
    words = fixtures.stream(90)
    groups = frequency_groups(words, _V, 3)
    found = token_fidelity(
        teachers, student, words, prefix=0, groups=groups, batch_size=1, window=16
    )
    inputs = np.concatenate([[0], words[:-1]])[np.newaxis]
    t, s = (
        np.mean(
            [reference.softmax(m(inputs).numpy().astype(float))[0] for m in models],
            axis=0,
        )
        for models in (teachers, [student])
    )
    parts = [np.ones(90, bool), *(groups[words] == group for group in range(3))]
    assert len(found) == 4
    for part, own in zip(parts, found, strict=True):
        p, q, y = t[part], s[part], words[part]
        rows = np.arange(len(y))
        close = fidelity(p, q)
        assert own.tokens == len(y)
        assert own.teacher_nll == pytest.approx(-np.log(p[rows, y]).mean(), rel=1e-5)
        assert own.student_nll == pytest.approx(-np.log(q[rows, y]).mean(), rel=1e-5)
        assert own.agreement == pytest.approx(close.agreement)
        assert own.divergence == pytest.approx(close.divergence, rel=1e-4)
        for calibration, probs in (
            (own.teacher_calibration, p),
            (own.student_calibration, q),
        ):
            expected = expected_calibration_error(probs, y)
            assert calibration == pytest.approx(expected, abs=1e-5)


def test_a_model_agrees_with_itself():
    model = fixtures.language_model()
    (found,) = token_fidelity(model, model, fixtures.stream(50), prefix=0)
    assert found.agreement == 1.0 and abs(found.divergence) < 1e-9
    assert found.teacher_nll == found.student_nll


def test_a_teacher_under_dropout_masks():
    model = fixtures.language_model(input_dropout=0.4)
    words, masks = fixtures.stream(40), MonteCarloDropout(3, seed=2)
    found, plain = (
        token_fidelity(
            model, model, words, prefix=0, batch_size=1, window=8, dropout=dropout
        )[0]
        for dropout in (masks, None)
    )
    expected = target_log_probs(model, words, 1, 8, prefix=0, monte_carlo=masks)
    # Draws come in another order.
    assert found.teacher_nll == pytest.approx(-expected.mean(), abs=0.05)
    assert found.teacher_nll != plain.teacher_nll and found.divergence > 1e-4
    assert found.student_nll == plain.student_nll
    one = MonteCarloDropout(1, seed=3)
    (single,) = token_fidelity(
        model, model, words, prefix=0, batch_size=1, window=8, dropout=one
    )
    expected = target_log_probs(model, words, 1, 8, prefix=0, monte_carlo=one)
    assert single.teacher_nll == pytest.approx(-expected.mean(), abs=1e-5)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_an_n_gram_teaches(order):
    n_gram = fixtures.restricted_model(order).with_floor(0.1)
    student, words = fixtures.language_model(seed=5), fixtures.stream(90)
    (found,) = token_fidelity(n_gram, student, words, prefix=0, batch_size=1, window=16)
    before = [-1] * (order - 2) + [0, *words[:-1]]
    contexts = np.array(
        [before[place : place + order - 1] for place in range(90)]
    ).reshape(90, order - 1)
    contexts = tf.constant(contexts[:, 0] if order == 2 else contexts, tf.int32)
    # In graphs -1 is a word that was never seen.
    p = np.exp(tf.function(n_gram.log_probs, autograph=False)(contexts))
    expected = -np.log(p[np.arange(90), words]).mean()
    assert found.teacher_nll == pytest.approx(expected, rel=1e-5)
    inputs = np.concatenate([[0], words[:-1]])[np.newaxis]
    q = reference.softmax(student(inputs).numpy().astype(float))[0]
    assert found.divergence == pytest.approx(fidelity(p, q).divergence, rel=1e-4)
    assert found.agreement == pytest.approx(fidelity(p, q).agreement)
    with pytest.raises(ValueError, match="a restricted model has no `dropout`"):
        token_fidelity(n_gram, student, words, prefix=0, dropout=MonteCarloDropout(2))


def test_groups_have_about_as_many_tokens():
    tokens = np.repeat([3, 1, 0, 4], [50, 30, 15, 5])
    groups = frequency_groups(tokens, 6, 2)
    np.testing.assert_array_equal(groups, [1, 1, 1, 0, 1, 1])
    assert len(set(frequency_groups(tokens, 6, 1))) == 1


def test_mistakes():
    model = fixtures.language_model()
    other = type(model)(9, 8, 1, jit_loop=False)
    with pytest.raises(ValueError, match=r"one vocabulary, found sizes \['7', '9'\]"):
        token_fidelity(model, other, [1, 2], prefix=0)
    with pytest.raises(ValueError, match=r"`teacher` must be a language model"):
        token_fidelity("model", model, [1, 2], prefix=0)
    with pytest.raises(ValueError, match=r"`groups` must be"):
        frequency_groups([1], 3, 0)
