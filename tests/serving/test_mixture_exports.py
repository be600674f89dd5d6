"""Exports of mixtures answer as the models do that are mixed in Python."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.evaluation import (
    interpolate,
    restricted_target_log_probs,
    target_log_probs,
)
from rlm_tf.generation import MixtureStepwise, generate_text
from rlm_tf.generation.mixture import log_mixture
from rlm_tf.generation.stepwise import as_stepwise
from rlm_tf.restricted import KneserNey
from rlm_tf.serving import export_language_model
from tests.serving.exported import TEXT, generate, make_model, score
from tests.serving.test_exported_models import causal_convolution

pytestmark = pytest.mark.landing

MU = 0.3
TEXTS = ["the cat saw a dog\non the mat ; a dog", "didn't it", ""]


@pytest.fixture(scope="module")
def restricted(vocabulary):
    return KneserNey(3).fit(vocabulary.encode(TEXT * 2), len(vocabulary))


@pytest.fixture(scope="module")
def mixed(vocabulary, model, restricted, tmp_path_factory):
    path = tmp_path_factory.mktemp("mixtures") / "x"
    mixture = (restricted, MU)
    return tf.saved_model.load(
        str(export_language_model(model, vocabulary, path, mixture=mixture))
    )


def test_scores_are_those_of_the_interpolation(vocabulary, model, restricted, mixed):
    eos = vocabulary.eos_id
    answer = score(mixed, TEXTS)
    assert np.isfinite(answer["log_probs"]).all()
    for row, text in enumerate(TEXTS[:2]):
        ids = vocabulary.encode(text)
        log_p = restricted_target_log_probs(restricted, ids, prefix=eos)
        log_q = target_log_probs(model, ids, 1, 20, prefix=eos)
        # The restricted model knows some of these words and not others.
        expected = interpolate(log_q, log_p, MU)
        found = answer["log_probs"][row, : len(ids)]
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert answer["lengths"].tolist()[2] == 0


def test_the_next_word_is_that_of_the_mixture(vocabulary, model, restricted, mixed):
    eos = vocabulary.eos_id
    answer = mixed.signatures["next_token"](
        texts=tf.constant(["the cat"]), k=tf.constant(len(vocabulary))
    )
    ids = [eos, *vocabulary.encode("the cat")]
    probs = tf.nn.softmax(model(tf.constant([ids]))[0, -1]).numpy()
    expected = (1 - MU) * probs + MU * restricted.probs([ids[-2:]])[0].numpy()
    names = [name.decode() for name in answer["tokens"].numpy()[0]]
    order = [vocabulary.tokens.index(name) for name in names]
    np.testing.assert_allclose(
        answer["probabilities"].numpy()[0], expected[order], atol=1e-6
    )
    assert sorted(order) == [*range(len(vocabulary))]


def test_defaults_need_no_parameters(mixed):
    answer = mixed.signatures["generate_default"](
        prompts=tf.constant(["the cat", ""]), max_tokens=tf.constant(7)
    )
    texts = [text.decode() for text in answer["text"].numpy()]
    # The seed says how to have the same again.
    again = generate(
        mixed,
        ["the cat", ""],
        max_tokens=7,
        top_p=0.95,
        seed=int(answer["seed"].numpy()),
    )
    assert texts == again["text"]
    assert [t.decode() for t in answer["full_text"].numpy()] == again["full_text"]
    others = {
        mixed.signatures["generate_default"](
            prompts=tf.constant(["the cat"]), max_tokens=tf.constant(30)
        )["text"].numpy()[0]
        for _ in range(5)
    }
    assert len(others) > 1


def test_what_is_said_is_what_python_says(vocabulary, model, restricted, mixed):
    stepwise = MixtureStepwise(
        as_stepwise(model, None), restricted, MU, vocabulary.eos_id
    )
    prompts = ["the cat", "", "a dog saw"]
    for temperature in (0.0, 1.0):
        options = {"temperature": temperature, "top_p": 0.9}
        said = generate(mixed, prompts, max_tokens=8, **options)["text"]
        assert generate_text(stepwise, vocabulary, prompts, 8, **options) == said
        alone = generate_text(stepwise, vocabulary, prompts[0], 8, **options)
        assert alone == said[0]
    assert generate_text(stepwise, vocabulary, []) == []


@pytest.mark.landing
@pytest.mark.parametrize("order", [1, 4])
def test_a_restricted_model_alone(vocabulary, order, tmp_path):
    restricted = KneserNey(order, floor=0.01).fit(
        vocabulary.encode(TEXT), len(vocabulary)
    )
    path = export_language_model(restricted, vocabulary, tmp_path / "x")
    answer = score(tf.saved_model.load(str(path)), TEXTS)
    ids = vocabulary.encode(TEXTS[0])
    expected = restricted_target_log_probs(restricted, ids, prefix=vocabulary.eos_id)
    np.testing.assert_allclose(answer["log_probs"][0, : len(ids)], expected, atol=1e-5)


def test_models_without_states_at_a_temperature(vocabulary, restricted, tmp_path):
    model = causal_convolution(len(vocabulary))
    path = export_language_model(
        model,
        vocabulary,
        tmp_path / "x",
        context_length=8,
        mixture=(restricted, MU),
        temperature=1.6,
    )
    loaded = tf.saved_model.load(str(path))
    ids, eos = vocabulary.encode(TEXTS[0]), vocabulary.eos_id
    log_q = target_log_probs(model, ids, 1, len(ids), prefix=eos, temperature=1.6)
    log_p = restricted_target_log_probs(restricted, ids, prefix=eos)
    found = score(loaded, TEXTS)["log_probs"][0, : len(ids)]
    np.testing.assert_allclose(found, interpolate(log_q, log_p, MU), atol=1e-5)
    assert generate(loaded, ["the cat"], max_tokens=12)["text"][0]


@pytest.mark.landing
def test_a_temperature_alone(vocabulary, model, tmp_path):
    path = export_language_model(model, vocabulary, tmp_path / "x", temperature=0.5)
    loaded = tf.saved_model.load(str(path))
    ids, eos = vocabulary.encode(TEXTS[0]), vocabulary.eos_id
    expected = target_log_probs(model, ids, 1, 20, prefix=eos, temperature=0.5)
    found = score(loaded, TEXTS)["log_probs"][0, : len(ids)]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    # That of a request comes on top: half of two is one.
    options = {"max_tokens": 9, "seed": 3}
    said = generate(loaded, ["the cat"], temperature=2.0, **options)["text"]
    assert said == [generate_text(model, vocabulary, "the cat", 9, top_p=1.0, seed=3)]


@pytest.mark.landing
def test_half_precision_keeps_the_words(vocabulary, restricted, tmp_path):
    model = make_model(vocabulary, num_layers=1, dtype="mixed_bfloat16")
    path = export_language_model(
        model, vocabulary, tmp_path / "x", mixture=(restricted, 0.9)
    )
    ids, eos = vocabulary.encode(TEXTS[0]), vocabulary.eos_id
    log_q = target_log_probs(model, ids, 1, 20, prefix=eos)
    log_p = restricted_target_log_probs(restricted, ids, prefix=eos)
    found = score(tf.saved_model.load(str(path)), TEXTS)["log_probs"][0, : len(ids)]
    np.testing.assert_allclose(found, interpolate(log_q, log_p, 0.9), atol=0.05)


def test_no_probability_is_lost():
    logits = tf.constant([[0.0, -200.0, -np.inf, -np.inf]])
    log_p = tf.math.log(tf.constant([[0.0, 0.0, 1.0, 0.0]]))
    found = log_mixture(logits, log_p, 0.25).numpy()[0]
    expected = [np.log(0.75), np.log(0.75) - 200.0, np.log(0.25), -np.inf]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_mistakes(vocabulary, model, restricted, tmp_path):
    with pytest.raises(ValueError, match=r"KneserNey gives \d+ of .* no probability"):
        export_language_model(restricted, vocabulary, tmp_path / "x")
    path = tmp_path / "x"
    for mu in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match=r"`mu` must be in \(0, 1\)"):
            export_language_model(model, vocabulary, path, mixture=(restricted, mu))
    with pytest.raises(ValueError, match="KneserNey has no tables yet"):
        export_language_model(model, vocabulary, path, mixture=(KneserNey(2), MU))
    with pytest.raises(ValueError, match=r"`mixture\[0\]` must be a restricted model"):
        export_language_model(model, vocabulary, path, mixture=(model, MU))
    for temperature in (0.0, np.nan):
        with pytest.raises(ValueError, match="`temperature` must be positive"):
            export_language_model(model, vocabulary, path, temperature=temperature)
    with pytest.raises(ValueError, match="alone has no `temperature`"):
        export_language_model(restricted, vocabulary, path, temperature=2.0)
    with pytest.raises(ValueError, match="alone has no `mixture`"):
        export_language_model(restricted, vocabulary, path, mixture=(restricted, MU))
    other = KneserNey(2).fit([0, 1, 2], 3)
    with pytest.raises(ValueError, match="predicts 3 tokens"):
        export_language_model(other, vocabulary, path)
    with pytest.raises(ValueError, match="has 3 tokens, the other"):
        export_language_model(model, vocabulary, path, mixture=(other, MU))
    assert not list(tmp_path.iterdir())
