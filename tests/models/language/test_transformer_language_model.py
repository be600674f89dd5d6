"""The causal transformer: one number for every way to cut a stream."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import Vocabulary, contiguous_batches
from rlm_tf.evaluation import target_log_probs
from rlm_tf.generation import generate, generate_text
from rlm_tf.models import (
    InBatchContexts,
    InducedModelMatching,
    SampledContexts,
    TransformerLanguageModel,
)
from rlm_tf.restricted import KneserNey
from rlm_tf.serving import export_language_model

V, CONTEXT = 20, 6
STEPS = np.random.default_rng(0).integers(1, 3, size=600)
# Every word is followed by one of two.
STREAM = (np.cumsum(STEPS) % V).astype(np.int32)


def make(**options) -> TransformerLanguageModel:
    given = {"width": 8, "num_layers": 2, "num_heads": 2, "context_length": CONTEXT}
    return TransformerLanguageModel(V, **{**given, "seed": 1, **options})


@pytest.fixture(scope="module", params=["rotary", "learnt"])
def model(request) -> TransformerLanguageModel:
    model = make(positions=request.param)
    rng = np.random.default_rng(1)
    for weight in model.trainable_weights:
        # Biases of distances begin at 0.
        weight.assign(weight.numpy() + 0.3 * rng.normal(size=weight.shape))
    return model


def test_windows_make_no_difference(model):
    tokens = STREAM[:40]
    whole = target_log_probs(model, tokens, 1, 40, prefix=0)
    for window in (1, 7, 13):
        found = target_log_probs(model, tokens, 1, window, prefix=0)
        np.testing.assert_allclose(found, whole, rtol=1e-4, atol=1e-5)
    read = np.concatenate([[0], tokens[:-1]])[np.newaxis]
    log_probs = tf.nn.log_softmax(model(read))[0].numpy()
    expected = log_probs[np.arange(40), tokens]
    np.testing.assert_allclose(whole, expected, rtol=1e-4, atol=1e-5)


def test_a_token_sees_what_is_near_and_nothing_behind_it(model):
    tokens = STREAM[np.newaxis, :40].copy()
    before = model(tokens).numpy()
    later = tokens.copy()
    later[0, 20] = (later[0, 20] + 5) % V
    after = model(later).numpy()
    np.testing.assert_array_equal(after[0, :20], before[0, :20])
    # Two blocks reach twice as far as one.
    changed = np.abs(after - before)[0].max(-1) > 1e-6
    assert changed[20 : 21 + CONTEXT].all()
    assert not changed[21 + 2 * CONTEXT :].any()


def test_a_row_that_starts_forgets_the_window_before(model):
    tokens = STREAM[:20].reshape(2, 10)
    fresh = model(tokens).numpy()
    model((STREAM[20:40].reshape(2, 10), np.ones(2, np.int32)))
    found = model((tokens, np.array([1, 0], np.int32))).numpy()
    np.testing.assert_allclose(found[0], fresh[0], rtol=1e-5, atol=1e-6)
    assert np.abs(found[1] - fresh[1]).max() > 1e-3


def test_hidden_features_are_those_of_every_block(model):
    found = model.hidden_features(STREAM[np.newaxis, :10])
    assert [part.shape for part in found] == [(1, 10, 8)] * 2
    features = model.features(STREAM[np.newaxis, :10])
    np.testing.assert_allclose(model.final_norm(found[-1]), features, rtol=1e-5)


def test_generation_with_the_cache_is_that_without(model):
    prompt = STREAM[:9].tolist()
    found = generate(
        model, tf.ragged.constant([prompt], tf.int32), 8, seed=1, temperature=0.0
    )
    for token in found.to_list()[0]:
        logits = model(np.array([prompt], np.int32))[0, -1]
        assert token == int(tf.argmax(logits))
        prompt.append(token)


@pytest.mark.slow
@pytest.mark.parametrize(
    "contexts",
    [
        None,
        lambda: InBatchContexts(min_count=1),
        pytest.param(lambda: SampledContexts(STREAM, 2, 10), marks=pytest.mark.landing),
    ],
    ids=["alone", "in-batch", "sampled"],
)
def test_fit_learns_alone_and_with_induced_models(contexts):
    batches = contiguous_batches(STREAM, 4, 10, prefix=0)
    model: keras.Model = make(dropout=0.1, clip_norm=5.0)
    if contexts is not None:
        restricted = KneserNey(2).fit(STREAM, V)
        model = InducedModelMatching(model, restricted, contexts(), 0.2)
    model.compile(keras.optimizers.Adam(0.01))
    history = model.fit(batches.dataset(), epochs=5, shuffle=False, verbose=0)
    losses = history.history["nll"]
    assert losses[-1] < 0.6 * losses[0] < 0.6 * 1.2 * np.log(V)


@pytest.mark.landing
def test_a_compiled_step_is_the_same_step():
    batches = contiguous_batches(STREAM[:80], 2, 10, prefix=0)
    weights = []
    for jit_compile in (False, True):
        model = make()
        model.compile(keras.optimizers.SGD(0.1), jit_compile=jit_compile)
        model.reset_states(2)
        model.fit(batches.dataset(), shuffle=False, verbose=0)
        weights.append([weight.numpy() for weight in model.trainable_weights])
    for plain, compiled in zip(*weights, strict=True):
        np.testing.assert_allclose(compiled, plain, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_is_near(dtype):
    exact = make(seed=2)
    rounded = make(seed=2, dtype=dtype)
    rounded.set_weights(exact.get_weights())
    tokens = STREAM[np.newaxis, :30]
    assert rounded(tokens).dtype.size == 2
    found = tf.cast(rounded(tokens), tf.float32)
    np.testing.assert_allclose(found, exact(tokens), atol=0.05)


@pytest.mark.landing
def test_exports_say_what_the_model_says(model, tmp_path):
    vocabulary = Vocabulary(
        ["<eos>", "<unk>", *(f"w{i}" for i in range(V - 2))], "whitespace"
    )
    restricted = KneserNey(3).fit(STREAM, V).with_floor(0.01)
    path = export_language_model(
        model, vocabulary, tmp_path / "a", mixture=(restricted, 0.3)
    )
    loaded = tf.saved_model.load(str(path))
    text = vocabulary.decode(STREAM[1:40])
    answer = loaded.score(tf.constant([text]))["log_probs"].numpy()[0]
    tokens = vocabulary.encode(text)
    log_q = target_log_probs(model, tokens, 1, 16, prefix=0)
    log_p = restricted.score(np.concatenate([[0, 0], tokens]))
    expected = np.log(0.7 * np.exp(log_q) + 0.3 * np.exp(log_p))
    np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)
    assert generate_text(model, vocabulary, "w1", 3, temperature=0.0).split()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 9}, "multiple of `num_heads`"),
        ({"dropout": 1.0}, "`dropout` must lie in"),
        ({"output_dropout": -0.1}, "`output_dropout` must lie in"),
        ({"num_layers": 0}, "num_layers"),
        ({"positions": "none"}, "`positions` must be one of"),
    ],
)
def test_mistakes_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)
