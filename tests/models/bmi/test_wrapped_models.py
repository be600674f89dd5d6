"""BMI around other models; files; mistakes."""

from __future__ import annotations

import io
import math
import zipfile

import h5py
import keras
import numpy as np
import pytest

import rlm_tf
from rlm_tf.data import SentencePairs
from rlm_tf.layers import PairDiscriminator
from rlm_tf.models import (
    BootstrappedMutualInformation,
    InBatchContexts,
    InducedModelMatching,
    SampledContexts,
    TransformerLanguageModel,
)
from rlm_tf.models.language.interface import language_model_of
from rlm_tf.optimizers import DecoupledOptimizer
from rlm_tf.restricted import KneserNey
from tests.models.bmi.small_models import TEXT, V, batch, language_model, wrapped

# Tracing takes longer than the steps.
pytestmark = pytest.mark.eager


def test_imm_keeps_its_terms():
    restricted = KneserNey(2).fit(TEXT, V)
    imm = InducedModelMatching(
        language_model(dtype="float32"), restricted, InBatchContexts(), 0.3
    )
    bmi = wrapped(imm)
    bmi.compile(keras.optimizers.SGD(0.1))
    logs = bmi.train_on_batch(*batch(), return_dict=True)
    assert {"nll", "imm", "mutual_information", "imm_coverage"} <= set(logs)
    expected = logs["nll"] + 0.3 * logs["imm"] + 0.1 * logs["mutual_information"]
    assert logs["loss"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("options", [{}, {"gradient": "crosstalk"}])
def test_imm_with_sampled_contexts_keeps_its_gradient(options):
    """The same step as without BMI, where BMI has no weight."""
    moved = []
    for wrap in (False, True):
        keras.utils.set_random_seed(1)
        model = InducedModelMatching(
            language_model(dtype="float32"),
            KneserNey(2).fit(TEXT, V),
            SampledContexts(TEXT, 2, 3, seed=1),
            0.3,
            **options,
        )
        if wrap:
            model = wrapped(model, weight=0.0, clip_norm=math.inf)
        model.compile(keras.optimizers.SGD(0.1))
        (tokens, start, pairs), targets, weights = batch()
        x = (tokens, start, pairs) if wrap else (tokens, start)
        model.train_on_batch(x, targets, weights)
        moved.append(language_model_of(model).get_weights())
    for found, expected in zip(*moved, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_parts_of_imms_terms_are_those_of_its_model():
    """In the authors' variant the embedding has factors of its own."""
    imm = InducedModelMatching(
        language_model(dtype="float32"),
        KneserNey(2).fit(TEXT, V),
        SampledContexts(TEXT, 2, 3, truncated=True),
        variant="authors",
    )
    bmi = wrapped(imm)
    spec = bmi.term_specs[1]
    factor = bmi._variable_factor(spec)
    embedding = imm.model.embedding.trainable_variables[0]
    assert float(factor(embedding)) == 0.0
    assert factor(bmi.discriminator.trainable_variables[0]) == 1.0
    bmi.compile(keras.optimizers.SGD(0.1))
    logs = bmi.train_on_batch(*batch(), return_dict=True)
    assert {"nll", "mutual_information"} <= set(logs)


class _WithFeatures(keras.Model):
    """A model that says what its hidden layer gives."""

    def __init__(self):
        super().__init__()
        self.embedding = keras.layers.Embedding(V, 3)
        self.softmax = keras.layers.Dense(V)

    def call(self, tokens, training=False):
        return self.softmax(self.embedding(tokens))

    def hidden_features(self, tokens, states=None, training=False):
        return [self.embedding(tokens)]


def test_a_model_that_says_what_its_hidden_layers_give():
    bmi = BootstrappedMutualInformation(
        _WithFeatures(), discriminator=PairDiscriminator(3), phase_two="raml"
    )
    bmi.set_phase(1)
    terms = bmi.objective_terms(*batch(), True)
    assert np.all(np.isfinite(terms["raml"].loss))
    assert bmi.discriminator.width == 3


def test_a_functional_model_must_not_see_what_it_predicts():
    inputs = keras.Input((None,), dtype="int32")
    low = keras.layers.Embedding(V, 5, name="low")(inputs)
    both = keras.layers.Bidirectional(keras.layers.LSTM(2, return_sequences=True))(low)
    model = keras.Model(inputs, keras.layers.Dense(V)(both), name="both_ways")
    with pytest.raises(ValueError, match="predictions of 'both_ways' change with"):
        BootstrappedMutualInformation(model, hidden_layers=("low",))


def test_a_functional_model_is_not_refused_for_rounding():
    """Rows of one product differ in their last bits; whether they do varies."""
    for seed in range(8):
        keras.utils.set_random_seed(seed)
        inputs = keras.Input((None,), dtype="int32")
        hidden = keras.layers.Embedding(V, 10)(inputs)
        hidden = keras.layers.LSTM(10, return_sequences=True, name="low")(hidden)
        model = keras.Model(inputs, keras.layers.Dense(V)(hidden))
        bmi = BootstrappedMutualInformation(model, hidden_layers=("low",))
        assert bmi.hidden_layers == ("low",)


def test_phases_that_there_are():
    with pytest.raises(ValueError, match=r"`phase` must lie in \[0, 0\]"):
        wrapped().set_phase(1)
    with pytest.raises(ValueError, match=r"`phase` must lie in \[0, 1\]"):
        wrapped(phase_two="raml").set_phase(2)


def test_a_transformer_and_a_functional_model():
    transformer = TransformerLanguageModel(V, 8, 1, 2, 16)
    inputs = keras.Input((None,), dtype="int32")
    hidden = keras.layers.GRU(5, return_sequences=True, name="low")(
        keras.layers.Embedding(V, 4)(inputs)
    )
    functional = keras.Model(inputs, keras.layers.Dense(V)(hidden))
    for model, options, width in (
        (transformer, {}, 8),
        (functional, {"hidden_layers": ("low",)}, 5),
    ):
        bmi = BootstrappedMutualInformation(
            model, discriminator=PairDiscriminator(3), phase_two="raml", **options
        )
        bmi.set_phase(1)
        terms = bmi.objective_terms(*batch(), True)
        assert set(terms) == {"nll", "mutual_information", "raml"}
        assert np.all(np.isfinite(terms["raml"].loss))
        assert bmi.discriminator.weights[0].shape[0] == 5 * width


def test_batches_without_pairs_evaluate_the_language_model():
    bmi = wrapped()
    bmi.compile(keras.optimizers.SGD(0.1))
    (tokens, start, pairs), targets, weights = batch()
    logs = bmi.test_on_batch((tokens, start), targets, weights, return_dict=True)
    assert set(logs) == {"loss", "nll", "perplexity"}
    with_pairs = bmi.test_on_batch(
        (tokens, start, pairs), targets, weights, return_dict=True
    )
    assert {"mine", "pair_accuracy", "mutual_information"} <= set(with_pairs)
    with pytest.raises(ValueError, match="a batch without pairs; give `fit"):
        bmi.train_on_batch((tokens, start), targets, weights)


def _holds_text(path, sentences) -> bool:
    """Whether a file has three words of a sentence, in an array or its settings."""
    with zipfile.ZipFile(path) as file:
        config = file.read("config.json").decode()
        weights = h5py.File(io.BytesIO(file.read("model.weights.h5")))
    arrays = []
    weights.visititems(
        lambda _, item: (
            arrays.append(item[()].ravel()) if isinstance(item, h5py.Dataset) else None
        )
    )
    assert len(arrays) > 5
    for sentence in sentences:
        words = sentence[sentence > 0][:3]
        if len(words) < 3:
            continue
        if str(words.tolist())[1:-1] in config:
            return True
        for array in arrays:
            if len(array) >= 3 and array.dtype.kind in "fiu":
                windows = np.lib.stride_tricks.sliding_window_view(array, 3)
                if np.any(np.all(windows == words, axis=1)):
                    return True
    return False


def test_a_file_holds_both_models_and_no_text(tmp_path):
    bmi = wrapped(language_model(dtype="float32"), pooling="last", phase_two="raml")
    bmi.compile(keras.optimizers.SGD(0.1))
    bmi.train_on_batch(*batch())
    bmi.save(tmp_path / "model.keras")
    again = rlm_tf.load_model(tmp_path / "model.keras")
    assert again.pooling == "last" and again.phase_two == "raml"
    sentences = SentencePairs(TEXT, 0, 2, most_tokens=6).sentences
    pair = sentences[:3], sentences[3:6]
    np.testing.assert_array_equal(again.pair_scores(*pair), bmi.pair_scores(*pair))
    assert not _holds_text(tmp_path / "model.keras", sentences)
    element = batch(seed=4)
    for model in (bmi, again):
        model.train_on_batch(*element)
    for found, expected in zip(again.weights, bmi.weights, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def _trained_and_loaded(path, dtype, optimizer):
    """A model after a step, and what its file gives back."""
    bmi = wrapped(language_model(dtype=dtype))
    bmi.compile(optimizer)
    bmi.train_on_batch(*batch())
    bmi.save(path)
    return bmi, rlm_tf.load_model(path)


def test_phase_two_begins_from_a_file_of_phase_one(tmp_path):
    bmi, first = _trained_and_loaded(
        tmp_path / "model.keras", "float32", keras.optimizers.SGD(0.1)
    )
    again = BootstrappedMutualInformation(
        first.model, discriminator=first.discriminator, phase_two="raml"
    )
    again.set_phase(1)
    again.compile(keras.optimizers.SGD(0.1))
    for model in ("model", "discriminator"):
        found, expected = (getattr(each, model).get_weights() for each in (again, bmi))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    assert again.train_on_batch(*batch(seed=4), return_dict=True)["raml"] > 0


def test_a_file_in_mixed_precision_has_all_of_the_optimisers(tmp_path):
    bmi, again = _trained_and_loaded(
        tmp_path / "model.keras", "mixed_float16", keras.optimizers.Adam(0.1)
    )
    for found, expected in zip(
        again.optimizer.variables, bmi.optimizer.variables, strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def _masked():
    model = _WithFeatures()
    model.is_causal = False
    return model


def _decoupled():
    return DecoupledOptimizer(
        {name: keras.optimizers.SGD(0.1) for name in ("model", "discriminator")}
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wrapped(wrapped()), "`model` has BMI already"),
        (lambda: wrapped(_masked()), "_WithFeatures is masked"),
        (
            lambda: BootstrappedMutualInformation(language_model(), discriminator=5),
            "`discriminator` must be a PairDiscriminator or None, found 5",
        ),
        (
            lambda: BootstrappedMutualInformation(
                language_model(), discriminator=wrapped(_WithFeatures()).discriminator
            ),
            "`discriminator` was built for 3 features of a sentence; Regul.* has 8",
        ),
        (
            lambda: wrapped(hidden_layers=("nope",)),
            "RegularizedLanguageModel says itself what its hidden layers give",
        ),
        (
            lambda: wrapped().compile(_decoupled(), "adam"),
            "a DecoupledOptimizer has the discriminator's optimiser",
        ),
        (
            lambda: wrapped(clip_norm=1.0).compile(_decoupled()),
            "leave `discriminator_optimizer` and the model's `clip_norm` out",
        ),
        (lambda: wrapped(pooling="sum"), "`pooling` must be one of max, last, mean"),
        (lambda: wrapped(phase_two="x"), "`phase_two` must be one of"),
        (lambda: wrapped(scale="x"), "`scale` must be one of sentence, sum, batch"),
        (lambda: wrapped(temperature=0.0), "`temperature` must be finite and positive"),
        (lambda: wrapped(weight=-1.0), "`weight` must be finite and not negative"),
        (
            lambda: wrapped(keras.Sequential([keras.layers.Embedding(V, 3)])),
            r"name layers of a functional Keras model \(`hidden_layers",
        ),
    ],
)
def test_mistakes(make, message):
    with pytest.raises(ValueError, match=message):
        make()
