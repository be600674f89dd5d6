"""Exports of latent-variable models of sentences."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.layers import (
    CategoricalLatents,
    LSTMCell,
    NormalLatents,
    SentenceDecoder,
    SentenceEncoder,
)
from rlm_tf.models import MonteCarloVAE
from rlm_tf.objectives.monte_carlo import iwae
from rlm_tf.serving import export_latent_model
from tests.models.latent.vae_fixtures import symbol_model

pytestmark = pytest.mark.landing

_TEXTS = ["the cat sat on the mat", "", "a dog"]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    text = "the cat sat on the mat\na dog saw a cat\nthe dog sat on a mat\n"
    return Vocabulary.build(text, rule="words", unknown=True)


def _model(vocabulary, discrete: bool) -> MonteCarloVAE:
    latents = CategoricalLatents(2, 3, seed=1) if discrete else NormalLatents(3, seed=1)
    size = 6 if discrete else 3
    model = MonteCarloVAE(
        SentenceEncoder(len(vocabulary), LSTMCell(6), seed=2),
        latents,
        SentenceDecoder(
            len(vocabulary),
            size,
            LSTMCell(6, state_dropout=0.5),
            end_id=vocabulary.eos_id,
            input_dropout=0.5,
            seed=3,
        ),
        estimator="vimco" if discrete else "dreg",
    )
    for variable in model.trainable_variables:
        variable.assign(variable * 2.5)
    return model


@pytest.fixture(scope="module", params=[False, True], ids=["normal", "categorical"])
def exported(request, vocabulary, tmp_path_factory):
    model = _model(vocabulary, request.param)
    path = tmp_path_factory.mktemp("latent") / "x"
    export_latent_model(model, vocabulary, path, most_tokens=12)
    return model, tf.saved_model.load(str(path)).signatures


def _tokens(vocabulary) -> np.ndarray:
    rows = [[*vocabulary.encode(text), vocabulary.eos_id] for text in _TEXTS]
    longest = max(map(len, rows))
    return np.array([row + [-1] * (longest - len(row)) for row in rows], np.int32)


def _texts(answer) -> list[str]:
    return [text.decode() for text in np.ravel(answer["texts"].numpy())]


@pytest.mark.landing
def test_encode_and_score_say_what_the_model_says(exported, vocabulary):
    model, signatures = exported
    batch, tokens = tf.constant(_TEXTS), _tokens(vocabulary)
    count = tf.constant(5)
    found = signatures["encode"](texts=batch, num_samples=count, seed=tf.constant(3))
    parameters = model(tokens)
    for name, values in parameters.items():
        np.testing.assert_allclose(found[name], values, rtol=2e-5, atol=1e-6)
    z = tf.transpose(found["samples"], [1, 0, *range(2, found["samples"].shape.rank)])
    assert z.shape == (5, 3, *model.latents.event_shape)
    extra = iwae(
        model.decoder(z, tokens),
        model.latents.prior().log_prob(z),
        model.latents.posterior(parameters).log_prob(z),
    ).extra
    weights = found["weights"].numpy()
    np.testing.assert_allclose(weights, tf.transpose(extra.weights), rtol=1e-3)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-5)
    scored = signatures["score"](texts=batch, num_samples=count, seed=tf.constant(3))
    np.testing.assert_allclose(scored["log_prob"], extra.log_evidence, rtol=1e-4)
    np.testing.assert_allclose(
        scored["usage"], extra.kl_divergence, rtol=1e-3, atol=1e-4
    )
    lengths = (tokens >= 0).sum(axis=1)
    np.testing.assert_array_equal(scored["lengths"], lengths)
    perplexity = np.exp(-scored["log_prob"] / lengths)
    np.testing.assert_allclose(scored["perplexity"], perplexity, rtol=1e-4)
    other = signatures["score"](texts=batch, num_samples=count, seed=tf.constant(4))
    assert np.any(other["log_prob"] != scored["log_prob"])


def test_resampled_are_draws_with_their_weights(exported):
    """How often each of four samples is taken, against its mean weight."""
    _, signatures = exported
    repeats, count = 150, 4
    # The same text again and again: each has samples and weights of its own.
    batch = tf.constant([_TEXTS[0]] * 20)
    taken, weights = np.zeros(count), np.zeros(count)
    for seed in range(repeats // 10):
        found = signatures["encode"](
            texts=batch, num_samples=tf.constant(count), seed=tf.constant(seed)
        )
        samples = found["samples"].numpy().reshape(20, count, -1)
        own = found["resampled"].numpy().reshape(20, 1, -1)
        same = np.all(samples == own, axis=-1)
        assert np.all(same.any(axis=1))
        # Heaviest first; equal samples have equal weights and share a draw.
        order = np.argsort(-found["weights"].numpy(), axis=1)
        same = same / same.sum(axis=1, keepdims=True)
        taken += np.take_along_axis(same, order, axis=1).sum(axis=0)
        weights += np.take_along_axis(found["weights"].numpy(), order, 1).sum(axis=0)
    draws = 20 * (repeats // 10)
    share = weights / draws
    error = 4 * np.sqrt(share * (1 - share) / draws)
    np.testing.assert_array_less(np.abs(taken / draws - share), error + 0.01)
    # Uniform draws would be told from these.
    assert np.abs(share - 1 / count).max() > 2 * error.max()


def test_decode_takes_the_likeliest_words(exported, vocabulary):
    model, signatures = exported
    z = signatures["encode"](
        texts=tf.constant(_TEXTS), num_samples=tf.constant(1), seed=tf.constant(3)
    )["resampled"]
    options = {"max_tokens": 6, "temperature": 0.0, "top_p": 1.0, "seed": 1}
    found = _texts(
        signatures["decode"](
            latents=z, **{name: tf.constant(v) for name, v in options.items()}
        )
    )
    decoder = model.decoder
    for row, text in enumerate(found):
        inputs = decoder.latent_inputs(z[np.newaxis, row : row + 1])
        words: list[int] = []
        while len(words) < 6:
            read = tf.constant([[vocabulary.eos_id, *words]])
            features, _ = decoder.features(read, inputs)
            best = int(np.argmax(decoder.logits(features)[-1, 0]))
            if best == vocabulary.eos_id:
                break
            words.append(best)
        assert text == vocabulary.decode(words)


def test_interpolation_says_what_latents_on_the_way_say(exported):
    _, signatures = exported
    ends = tf.constant(["the cat", "a dog"]), tf.constant(["on the mat", "a dog"])
    steps = 5
    found = signatures["interpolate"](
        first=ends[0], last=ends[1], steps=tf.constant(steps), max_tokens=tf.constant(6)
    )["texts"].numpy()
    assert found.shape == (2, steps)
    centres = []
    for texts in ends:
        parameters = signatures["encode"](
            texts=texts, num_samples=tf.constant(1), seed=tf.constant(0)
        )
        if "mean" in parameters:
            centres.append(parameters["mean"].numpy())
        else:
            centres.append(np.eye(3)[np.argmax(parameters["logits"], axis=-1)])
    options = {"max_tokens": 6, "temperature": 0.0, "top_p": 1.0, "seed": 0}
    for column in range(steps):
        z = _on_the_way(*centres, column / (steps - 1)).astype(np.float32)
        own = signatures["decode"](
            latents=tf.constant(z), **{k: tf.constant(v) for k, v in options.items()}
        )["texts"]
        np.testing.assert_array_equal(found[:, column], own)
    # The same sentence at both ends: the same all the way.
    assert len(set(found[1])) == 1 and len(set(found[0])) > 1


def _on_the_way(first, last, share):
    if first.ndim == 2:
        return first + share * (last - first)
    rows = []
    for one, other in zip(first, last, strict=True):
        differ = [i for i in range(len(one)) if np.any(one[i] != other[i])]
        for place, latent in enumerate(differ):
            if share * len(differ) >= place + 0.5:
                one = one.copy()
                one[latent] = other[latent]
        rows.append(one)
    return np.array(rows)


def test_mistakes_are_named(exported, vocabulary, tmp_path):
    model, signatures = exported
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="score: num_samples must be in"
    ):
        signatures["score"](
            texts=tf.constant(["a"]), num_samples=tf.constant(0), seed=tf.constant(1)
        )
    for last, steps, message in (
        (["b"], 3, "must be as many"),
        (["b", "c"], 1, r"steps must be in \[2, 1000\], found\] \[1\]"),
        (["b", "c"], 1001, r"steps must be in \[2, 1000\], found\] \[1001\]"),
        (["b", "c"], [3], r"interpolate: steps must be a scalar, found shape\] \[1\]"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            signatures["interpolate"](
                first=tf.constant(["a", "b"]),
                last=tf.constant(last),
                steps=tf.constant(steps),
                max_tokens=tf.constant(2),
            )
    with pytest.raises(ValueError, match="do not belong together"):
        other = Vocabulary.build("a b", rule="words", unknown=True)
        export_latent_model(model, other, tmp_path / "y", most_tokens=5)
    with pytest.raises(ValueError, match="must be a SentenceDecoder"):
        export_latent_model(symbol_model(), vocabulary, tmp_path / "y", most_tokens=5)
    with pytest.raises(ValueError, match="`model` must be a MonteCarloVAE"):
        export_latent_model(vocabulary, vocabulary, tmp_path / "y", most_tokens=5)
    assert not list(tmp_path.iterdir())
