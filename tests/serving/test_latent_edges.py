"""What exported latent-variable models say to odd requests, and odd models."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import Vocabulary
from rlm_tf.layers import (
    CategoricalLatents,
    LSTMCell,
    NormalLatents,
    SentenceDecoder,
    SentenceEncoder,
)
from rlm_tf.models import MonteCarloVAE
from rlm_tf.serving import MAX_TEXT_BYTES, LatentService, export_latent_model

pytestmark = pytest.mark.landing


def _model(policy, kind):
    """A model and its vocabulary, which has no `<unk>`."""
    text = "the cat sat on the mat\na dog saw it\n"
    vocabulary = Vocabulary.build(text, rule="words", unknown=False)
    options = {"seed": 1, "dtype": policy}
    latents = kind(3, **options) if kind is NormalLatents else kind(2, 3, **options)
    size, number = int(np.prod(latents.event_shape)), len(vocabulary)
    model = MonteCarloVAE(
        SentenceEncoder(number, LSTMCell(4), **options),
        latents,
        SentenceDecoder(number, size, LSTMCell(4), end_id=vocabulary.eos_id, **options),
        estimator="vimco",
        dtype=policy,
    )
    return model, vocabulary


def _export(folder, policy, kind):
    model, vocabulary = _model(policy, kind)
    path = export_latent_model(model, vocabulary, folder / "x", most_tokens=5)
    return tf.saved_model.load(str(path)).signatures


@pytest.fixture(scope="module")
def signatures(tmp_path_factory):
    return _export(tmp_path_factory.mktemp("edges"), "float32", NormalLatents)


@pytest.fixture(scope="module")
def of_categories(tmp_path_factory):
    return _export(tmp_path_factory.mktemp("edges"), "float64", CategoricalLatents)


def _sampled(signature, texts, num_samples=3):
    return signature(
        texts=tf.constant(texts, tf.string),
        num_samples=tf.constant(num_samples),
        seed=tf.constant(1),
    )


def _decode(signatures, latents, **options):
    options = {
        "max_tokens": 4,
        "temperature": 0.5,
        "top_p": 1.0,
        "seed": 1,
        **options,
    }
    latents = tf.constant(latents, tf.float32)
    options = {name: tf.constant(value) for name, value in options.items()}
    return signatures["decode"](latents=latents, **options)["texts"].numpy()


@pytest.mark.landing
@pytest.mark.parametrize("policy", ["float64", "mixed_bfloat16"])
def test_other_precisions_answer_in_single(tmp_path, policy, of_categories):
    signatures = of_categories
    if policy != "float64":
        signatures = _export(tmp_path, policy, NormalLatents)
    found = _sampled(signatures["encode"], ["the cat", ""])
    assert {value.dtype for value in found.values()} == {tf.float32}
    found = _sampled(signatures["score"], ["the cat", ""])
    assert found["log_prob"].dtype == tf.float32
    assert np.isfinite(found["log_prob"]).all()


@pytest.mark.landing
def test_no_texts_get_no_answers(signatures):
    found = _sampled(signatures["encode"], [])
    assert found["samples"].shape == (0, 3, 3) and found["mean"].shape == (0, 3)
    assert _sampled(signatures["score"], [])["log_prob"].shape == (0,)
    none = tf.constant([], tf.string)
    found = signatures["interpolate"](
        first=none, last=none, steps=tf.constant(4), max_tokens=tf.constant(2)
    )
    assert found["texts"].shape == (0, 4)
    assert _decode(signatures, np.zeros([0, 3])).shape == (0,)


def test_long_and_empty_texts(signatures):
    long = "the cat sat on the mat the cat"
    found = _sampled(signatures["score"], [long, "the cat sat on the dog", ""])
    np.testing.assert_array_equal(found["lengths"], [5, 5, 1])
    alone = _sampled(signatures["encode"], [long])["mean"]
    cut = _sampled(signatures["encode"], ["the cat sat on the"])["mean"]
    np.testing.assert_allclose(alone, cut, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1.0}, "decode: temperature must be >= 0 and finite"),
        ({"temperature": np.nan}, "decode: temperature must be >= 0 and finite"),
        ({"top_p": 2.0}, r"decode: top_p must be in \[0, 1\]"),
        ({"max_tokens": -1}, r"decode: max_tokens must be in \[0, 10000\]"),
        ({"max_tokens": 20_000}, r"decode: max_tokens must be in \[0, 10000\]"),
        ({"latents": [[0.0, np.nan, 0.0]]}, "decode: latents must be finite"),
        (
            {"latents": [[0.0, 1.0]]},
            r"latents must have shape \[N, 3\], found\] \[1 2\]",
        ),
    ],
)
def test_parameters_out_of_range_are_named(signatures, options, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        _decode(signatures, **{"latents": np.zeros([1, 3]), **options})


@pytest.mark.parametrize("shape", [[2, 3, 3], [2, 2, 3], [3], [1, 1]])
@pytest.mark.parametrize("kind", [NormalLatents, CategoricalLatents])
def test_latents_of_another_rank_are_named(request, kind, shape):
    """Such as the samples of `encode`, of which `decode` takes one a text."""
    name = "signatures" if kind is NormalLatents else "of_categories"
    signatures = request.getfixturevalue(name)
    if kind is CategoricalLatents:
        shape = [*shape[:1], *shape] if len(shape) == 3 else shape
    with pytest.raises(tf.errors.InvalidArgumentError, match="latents must have shape"):
        _decode(signatures, np.zeros(shape))


def test_nan_weights_are_named(tmp_path):
    model, vocabulary = _model("float32", NormalLatents)
    kernel = model.decoder.output_layer.kernel
    kernel.assign(kernel * np.nan)
    with pytest.raises(ValueError, match=r"the weight \S*kernel holds NaN"):
        export_latent_model(model, vocabulary, tmp_path / "x")


def test_requests_to_warm_up_are_answered(signatures):
    model, vocabulary = _model("float32", NormalLatents)
    requests = LatentService(model, vocabulary, 5).requests()
    assert set(requests) == {"encode", "decode", "score", "interpolate"}
    for name, inputs in requests.items():
        signatures[name](**inputs)


def test_shapes_and_lengths_are_named(signatures):
    message = r"score: texts must have shape \[N\], found\] \[\]"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        _sampled(signatures["score"], "the cat")
    with pytest.raises(tf.errors.InvalidArgumentError, match="at most 1000000 bytes"):
        _sampled(signatures["encode"], ["a" * (MAX_TEXT_BYTES + 1)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="num_samples must be a s"):
        _sampled(signatures["encode"], ["the cat"], [3])
    with pytest.raises(tf.errors.InvalidArgumentError, match="decode: top_p must be a"):
        _decode(signatures, np.zeros([1, 3]), top_p=[1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="decode: seed must be a"):
        _decode(signatures, np.zeros([1, 3]), seed=[1, 2])


def test_other_mistakes_are_named(signatures):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"unknown tokens.*zebra"):
        _sampled(signatures["score"], ["a zebra"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="num_samples must be in"):
        _sampled(signatures["encode"], ["a dog"], 0)
    text = tf.constant(["a dog"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="interpolate: max_tokens"):
        signatures["interpolate"](
            first=text, last=text, steps=tf.constant(2), max_tokens=tf.constant(-1)
        )
