"""A tiny random GPT-2 of KerasHub as a language model of this library."""

from __future__ import annotations

import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import Vocabulary, contiguous_batches
from rlm_tf.evaluation import evaluate
from rlm_tf.generation import generate, generate_text
from rlm_tf.layers import PairDiscriminator
from rlm_tf.models import (
    BootstrappedMutualInformation,
    InBatchContexts,
    InducedModelMatching,
    KerasHubLanguageModel,
    SampledContexts,
)
from rlm_tf.restricted import KneserNey
from rlm_tf.serving import export_language_model

V, LONGEST = 20, 24
WORDS = ["<eos>", "<unk>", *(f"w{i}" for i in range(V - 2))]
# Every word is followed by one of two.
STREAM = (
    np.cumsum(np.random.default_rng(0).integers(1, 3, size=600)).astype(np.int32) % V
)


def make(dropout: float = 0.0, **options) -> KerasHubLanguageModel:
    import keras_hub

    keras.utils.set_random_seed(3)
    backbone = keras_hub.models.GPT2Backbone(
        V,
        num_layers=2,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=32,
        dropout=dropout,
        max_sequence_length=LONGEST,
    )
    causal_lm = keras_hub.models.GPT2CausalLM(backbone, preprocessor=None)
    return KerasHubLanguageModel(causal_lm, **options)


@pytest.fixture(scope="module")
def model() -> KerasHubLanguageModel:
    return make()


def inputs_of(tokens):
    return {"token_ids": tokens, "padding_mask": np.ones_like(tokens)}


TOKENS = STREAM[:30].reshape(3, 10)


def test_logits_are_those_of_keras_hub(model):
    logits = model(TOKENS)
    np.testing.assert_array_equal(logits, model.causal_lm(inputs_of(TOKENS)))
    np.testing.assert_array_equal(model((TOKENS, np.ones(3, np.int32))), logits)
    assert (model.vocabulary_size, model.longest_window) == (V, LONGEST)


def test_the_loss_is_the_mean_of_the_weighted_tokens(model):
    weights = np.ones((3, 10), np.float32)
    weights[0, 3:] = 0.0
    targets = np.roll(TOKENS, -1, axis=1)
    model.compile("sgd")
    found = model.evaluate(TOKENS, targets, 3, 0, weights, return_dict=True)
    log_probs = tf.nn.log_softmax(model.causal_lm(inputs_of(TOKENS))).numpy()
    picked = np.take_along_axis(log_probs, targets[..., None], -1)[..., 0]
    nll = -(picked * weights).sum() / weights.sum()
    assert found["nll"] == pytest.approx(nll, rel=1e-5)
    assert found["perplexity"] == pytest.approx(np.exp(nll), rel=1e-5)


@pytest.mark.landing
def test_it_is_fine_tuned_alone_and_with_induced_models():
    batches = contiguous_batches(STREAM, 4, 10, prefix=0)
    reached = []
    for matched in (False, True):
        model: keras.Model = make(dropout=0.1, clip_norm=5.0)
        if matched:
            restricted = KneserNey(2).fit(STREAM, V)
            contexts = InBatchContexts(min_count=1)
            model = InducedModelMatching(model, restricted, contexts, 0.2)
            assert model.clip_norm == 5.0
        model.compile(keras.optimizers.Adam(0.01))
        history = model.fit(batches.dataset(), epochs=4, shuffle=False, verbose=0)
        losses = history.history["nll"]
        assert losses[-1] < 0.7 * losses[0]
        assert ("imm" in history.history) is matched
        found = evaluate(model, STREAM[:100], 2, 12, prefix=0)
        reached.append(found.perplexity)
    assert max(reached) < 10 < V


@pytest.mark.eager
@pytest.mark.slow
@pytest.mark.parametrize(
    "contexts",
    [
        lambda: InBatchContexts(min_count=2),
        pytest.param(
            lambda: SampledContexts(STREAM, 3, 10, seed=1), marks=pytest.mark.landing
        ),
    ],
    ids=["in-batch", "sampled"],
)
def test_a_step_of_imm_is_that_of_a_model_wrapped_by_hand(contexts):
    class ByHand(keras.Model):
        """Tokens to logits."""

        def __init__(self, causal_lm):
            super().__init__()
            self.causal_lm = causal_lm
            self.vocabulary_size = V

        def call(self, tokens, training=False):
            return self.causal_lm(inputs_of_tensor(tokens), training=training)

    def inputs_of_tensor(tokens):
        return {"token_ids": tokens, "padding_mask": tf.ones_like(tokens)}

    batch = contiguous_batches(STREAM, 4, 10, prefix=0)
    weights = []
    for wrap in (lambda model: model, lambda model: ByHand(model.causal_lm)):
        model = wrap(make())
        imm = InducedModelMatching(
            model, KneserNey(2).fit(STREAM, V), contexts(), 0.5, loss_scale=1.0
        )
        imm.compile(keras.optimizers.SGD(0.1))
        data = batch.dataset().take(2)
        if not isinstance(model, KerasHubLanguageModel):
            data = data.map(lambda x, y, w: (x[0], y, w))
        imm.fit(data, shuffle=False, verbose=0)
        weights.append([w.numpy() for w in imm.trainable_weights])
    for ours, theirs in zip(*weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_generation_takes_the_best_token_of_the_logits(model):
    prompt = tf.ragged.constant([[0, 3, 4]], tf.int32)
    found = generate(model, prompt, 3, seed=1, temperature=0.0, context_length=LONGEST)
    read = [0, 3, 4]
    for token in found.to_list()[0]:
        logits = model.causal_lm(inputs_of(np.array([read])))
        assert token == int(tf.argmax(logits[0, -1]))
        read.append(token)


@pytest.mark.landing
def test_the_export_says_what_the_model_says(model, tmp_path):
    vocabulary = Vocabulary(WORDS, "whitespace")
    path = export_language_model(
        model, vocabulary, tmp_path / "gpt2", context_length=LONGEST
    )
    loaded = tf.saved_model.load(str(path))
    answer = loaded.score(tf.constant(["w1 w2 w3"]))
    tokens = np.array([[0, *vocabulary.encode("w1 w2 w3")]])
    log_probs = tf.nn.log_softmax(model(tokens[:, :-1])).numpy()[0]
    expected = log_probs[np.arange(3), tokens[0, 1:]]
    np.testing.assert_allclose(answer["log_probs"][0], expected, rtol=1e-4)
    text = generate_text(
        model, vocabulary, "w1", 3, temperature=0.0, context_length=LONGEST
    )
    assert len(text.split()) <= 3


@pytest.mark.landing
def test_files_are_loaded_in_a_process_that_imported_nothing(model, tmp_path):
    model.save(tmp_path / "gpt2.keras")
    np.save(tmp_path / "tokens.npy", TOKENS)
    np.save(tmp_path / "logits.npy", model(TOKENS))
    program = (
        "import numpy as np, rlm_tf, sys\n"
        f"folder = {str(tmp_path)!r}\n"
        "model = rlm_tf.load_model(folder + '/gpt2.keras')\n"
        "logits = model(np.load(folder + '/tokens.npy'))\n"
        "np.testing.assert_array_equal(logits, np.load(folder + '/logits.npy'))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.landing
def test_keras_hub_is_imported_only_where_it_is_used():
    program = "import sys, rlm_tf.models, rlm_tf.serving, rlm_tf.commands.using\n"
    program += "assert not {'keras_hub', 'safetensors'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.landing
def test_a_preset_of_a_folder_is_the_model(model, tmp_path):
    import keras_hub

    model.causal_lm.save_to_preset(str(tmp_path / "preset"))
    causal_lm = keras_hub.models.GPT2CausalLM.from_preset(
        str(tmp_path / "preset"), preprocessor=None
    )
    other = KerasHubLanguageModel(causal_lm)
    np.testing.assert_array_equal(other(TOKENS), model(TOKENS))


def test_bmi_reads_the_backbone(model):
    bmi = BootstrappedMutualInformation(model, discriminator=PairDiscriminator(3))
    tokens = np.array([[1, 2, 0, -1]])
    (hidden,) = model.hidden_features(tokens[:, :3])
    assert bmi.discriminator.width == hidden.shape[-1]
    phi = np.max(hidden, axis=1)
    np.testing.assert_allclose(bmi.features(tokens), phi, rtol=1e-5, atol=1e-6)


def test_mistakes_are_named(model, monkeypatch):
    with pytest.raises(ValueError, match=r"at most 24 tokens, found 30"):
        model(STREAM[np.newaxis, :30])
    with pytest.raises(ValueError, match="must be a keras_hub"):
        KerasHubLanguageModel(keras.Sequential())
    monkeypatch.setitem(sys.modules, "keras_hub", None)
    with pytest.raises(ValueError, match="needs the package keras-hub"):
        KerasHubLanguageModel(model.causal_lm)
