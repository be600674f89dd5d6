"""BMI: both phases by loops, who gets which gradient, wrappers, files, mistakes."""

from __future__ import annotations

import io
import math
import zipfile

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

import rlm_tf
from rlm_tf.data import SentencePairs, contiguous_batches
from rlm_tf.layers import LSTMCell, PairDiscriminator
from rlm_tf.models import (
    BootstrappedMutualInformation,
    InBatchContexts,
    InducedModelMatching,
    RegularizedLanguageModel,
    SampledContexts,
    TransformerLanguageModel,
)
from rlm_tf.models.bmi.continuations import continuation
from rlm_tf.models.language.interface import language_model_of
from rlm_tf.optimizers import DecoupledOptimizer
from rlm_tf.restricted import KneserNey
from rlm_tf.training import ResumableBatches
from tests.references.bmi_reference import softplus
from tests.replica_steps import assert_two_replicas_equal_one

# Tracing takes longer than the steps.
pytestmark = pytest.mark.eager

V = 11
_RNG = np.random.default_rng(3)
TEXT = np.concatenate(
    [[*_RNG.integers(1, V, size=_RNG.integers(1, 5)), 0] for _ in range(12)]
).astype(np.int32)


def language_model(dropout=0.0, **options):
    return RegularizedLanguageModel(
        V,
        LSTMCell(4),
        2,
        input_dropout=dropout,
        jit_loop=False,
        **{"dtype": "float64", "seed": 1, **options},
    )


def wrapped(inner=None, **options):
    inner = inner or language_model()
    return BootstrappedMutualInformation(
        inner,
        discriminator=PairDiscriminator(3, seed=2, dtype=inner.dtype_policy),
        **options,
    )


def batch(step=0, pairs=4, rows=2, **options):
    """The element of a window of `rows` rows with `pairs` pairs."""
    windows = contiguous_batches(TEXT, rows, 5, prefix=0)
    source = SentencePairs(TEXT, 0, pairs, most_tokens=6, **options)
    data = ResumableBatches(windows, transform=source)
    data.seek(0, step)
    return next(iter(data.dataset))


def features_by_loops(model, sentence, state=None):
    """phi of one sentence: each layer's greatest outputs, token by token."""
    kept = [token for token in sentence if token >= 0]
    hidden = model.hidden_features(np.array([kept]), state)
    return np.concatenate([np.max(values[0], axis=0) for values in hidden])


def score_by_loops(bmi, first, second):
    features = (features_by_loops(bmi.model, piece) for piece in (first, second))
    return float(bmi.discriminator(tuple(f[None] for f in features))[0])


# === Values ===


@pytest.mark.parametrize("negatives", [1, 2])
def test_phase_one_by_loops(negatives):
    bmi = wrapped()
    (tokens, start, pairs), targets, weights = batch(negatives=negatives)
    x = (tokens, start, pairs)
    terms = bmi.objective_terms(x, targets, weights, training=True)
    plain = language_model().objective_terms((tokens, start), targets, weights, True)
    np.testing.assert_array_equal(terms["nll"].loss, plain["nll"].loss)
    found = terms["mutual_information"]
    assert found.loss.shape == [4] and np.all(found.weights == 1)
    flat = [np.reshape(values, (4, *values.shape[2:])) for values in pairs[:3]]
    for row in range(4):
        first, second, others = (pieces[row] for pieces in flat)
        expected = softplus(-score_by_loops(bmi, first, second))
        apart = [softplus(score_by_loops(bmi, first, other)) for other in others]
        assert float(found.loss[row]) == pytest.approx(expected + np.mean(apart))
    joint, apart = [], []
    for row in range(4):
        first, second, others = (pieces[row] for pieces in flat)
        joint.append(score_by_loops(bmi, first, second))
        apart.append([score_by_loops(bmi, first, other) for other in others])
    right = np.array(joint)[:, np.newaxis] > np.array(apart)
    assert float(bmi.accuracy_metric.result()) == pytest.approx(np.mean(right))
    mine = np.mean(joint) - np.log(np.mean(np.exp(apart)))
    assert float(bmi.mine_metric.result()) == pytest.approx(mine, rel=1e-5)


@pytest.mark.parametrize("scale", ["sentence", "sum", "batch"])
def test_phase_two_by_loops(scale):
    bmi = wrapped(phase_two="raml", temperature=0.7, scale=scale)
    bmi.set_phase(1)
    (tokens, start, pairs), targets, weights = batch(pairs=8)
    assert np.any(pairs.offsets > 0) and np.any(pairs.offsets == 0)
    terms = bmi.objective_terms((tokens, start, pairs), targets, weights, True)
    loss, found = terms["raml"].loss, terms["raml"].weights
    flat = [np.reshape(values, (8, *values.shape[2:])) for values in pairs]
    lengths, nlls, log_weights = [], [], []
    for row in range(8):
        first, second, proposal = flat[0][row], flat[1][row], flat[3][row]
        x, y = ([token for token in piece if token >= 0] for piece in (first, proposal))
        log_probs = np.log(tf.nn.softmax(bmi.model(np.array([x + y]))))[0]
        places = range(len(x) - 1, len(x) + len(y) - 1)
        nlls.append(-sum(log_probs[p, t] for p, t in zip(places, y, strict=True)))
        lengths.append(len(y))
        reward = score_by_loops(bmi, first, proposal)
        reward -= score_by_loops(bmi, first, second)
        assert flat[5][row] > 0 or reward == pytest.approx(0.0, abs=1e-12)
        log_weights.append(reward / 0.7 - flat[4][row])
    divided = {
        "sentence": np.array(lengths),
        "sum": 1,
        "batch": sum(lengths),
    }[scale]
    np.testing.assert_allclose(loss, np.array(nlls) / divided, rtol=1e-6)
    expected = np.exp(np.array(log_weights) - max(log_weights))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    size = expected.sum() ** 2 / np.sum(expected**2)
    assert float(bmi.size_metric.result()) == pytest.approx(size, rel=1e-5)
    # X is read once, in the pass that reads Y behind it.
    again = wrapped().objective_terms((tokens, start, pairs), targets, weights, True)
    np.testing.assert_allclose(
        terms["mutual_information"].loss, again["mutual_information"].loss, rtol=1e-9
    )


def test_the_term_of_phase_two_is_normalised_over_the_batch():
    bmi = wrapped(phase_two="raml", weight=0.0, raml_weight=1.0)
    bmi.compile(keras.optimizers.SGD(0.0))
    bmi.set_phase(1)
    element = batch(pairs=8)
    logs = bmi.train_on_batch(*element, return_dict=True)
    terms = bmi.objective_terms(*element, True)
    loss, weights = (np.array(v) for v in terms["raml"][:2])
    expected = np.sum(loss * weights) / np.sum(weights)
    assert logs["raml"] == pytest.approx(expected, rel=1e-5)
    assert logs["loss"] == pytest.approx(logs["nll"] + expected, rel=1e-5)


def test_rewards_of_the_next_sentence_are_exactly_zero():
    bmi = wrapped(language_model(dropout=0.5), phase_two="raml")
    bmi.set_phase(1)
    bmi.objective_terms(*batch(pairs=8, rate=1.0), True)
    assert float(bmi.reward_metric.result()) == 0.0
    assert float(bmi.size_metric.result()) == pytest.approx(8.0)


def test_a_sentence_behind_another():
    first = tf.constant([[5, 6, 0, -1], [7, 0, -1, -1]])
    second = tf.constant([[8, 0, -1, -1], [1, 2, 3, 0]])
    rows = continuation(first, second)
    np.testing.assert_array_equal(
        rows.tokens, [[5, 6, 0, 8, 0, 0, 0, 0], [7, 0, 1, 2, 3, 0, 0, 0]]
    )
    np.testing.assert_array_equal(rows.of_first[:, :3], [[1, 1, 1], [1, 1, 0]])
    assert not np.any(rows.of_first[:, 3:])
    np.testing.assert_array_equal(rows.places, [[2, 3, 4, 5], [1, 2, 3, 4]])
    np.testing.assert_array_equal(rows.weights, [[1, 1, 0, 0], [1, 1, 1, 1]])
    np.testing.assert_array_equal(rows.lengths, [2, 4])


@pytest.mark.parametrize("pooling", ["max", "last", "mean"])
def test_pooling_does_not_see_padding(pooling):
    bmi = wrapped(pooling=pooling)
    sentence = np.array([[3, 5, 0, -1, -1]])
    hidden = bmi.model.hidden_features(sentence[:, :3])
    values = np.concatenate([h[0] for h in hidden], axis=-1)
    expected = {"max": values.max(0), "last": values[-1], "mean": values.mean(0)}
    np.testing.assert_allclose(bmi.features(sentence)[0], expected[pooling], rtol=1e-12)


# === Gradients ===


def _gradients(bmi, name, element):
    with tf.GradientTape() as tape:
        term = bmi.objective_terms(*element, True)[name]
        weights = tf.stop_gradient(tf.cast(term.weights, term.loss.dtype))
        loss = tf.reduce_sum(term.loss * weights)
    omega = bmi.model.trainable_variables
    theta = bmi.discriminator.trainable_variables
    found = tape.gradient(loss, [v.value for v in [*omega, *theta]])
    return found[: len(omega)], found[len(omega) :]


def test_who_gets_which_gradient():
    bmi = wrapped(phase_two="raml")
    bmi.set_phase(1)
    element = batch(pairs=8)
    omega, theta = _gradients(bmi, "mutual_information", element)
    names = [v.path for v in bmi.model.trainable_variables]
    for name, gradient in zip(names, omega, strict=True):
        # phi needs no softmax.
        assert (gradient is None) == ("output" in name), name
    assert all(np.any(gradient != 0) for gradient in theta)
    omega, theta = _gradients(bmi, "raml", element)
    assert all(gradient is not None for gradient in omega)
    assert all(gradient is None for gradient in theta)


def test_a_falling_weight_leaves_the_discriminator_its_gradient():
    """The term is multiplied by the weight: what reaches D then is that of weight 1."""
    element = batch(pairs=8)
    found = []
    for weight in (0.25, keras.optimizers.schedules.ExponentialDecay(0.25, 1, 0.5)):
        bmi = wrapped(weight=weight)
        bmi.compile(keras.optimizers.SGD(0.0))
        loss = bmi.objective_terms(*element, True)["mutual_information"].loss
        found.append((loss, *_gradients(bmi, "mutual_information", element)))
    (loss, omega, theta), (falling_loss, falling_omega, falling_theta) = found
    np.testing.assert_array_equal(falling_loss, loss)
    for value, other in zip(omega, falling_omega, strict=True):
        if value is not None:
            np.testing.assert_allclose(
                tf.convert_to_tensor(other), tf.convert_to_tensor(value), rtol=1e-6
            )
    for value, other in zip(theta, falling_theta, strict=True):
        np.testing.assert_allclose(0.25 * other, value, rtol=1e-6)


def test_all_three_pieces_teach_the_language_model():
    """Words that occur in one kind of piece alone get a gradient in Phase I."""
    bmi = wrapped(language_model(tied=False))
    (tokens, start, pairs), targets, weights = batch(pairs=2)

    def piece(*words):
        return np.array([[[*words, 0, -1]] * 1] * 2, np.int32)

    pairs = pairs._replace(
        first=piece(1, 2),
        second=piece(3, 4),
        negatives=piece(5, 6)[:, :, None],
        proposal=piece(7, 8),
    )
    omega, _ = _gradients(
        bmi, "mutual_information", ((tokens, start, pairs), targets, weights)
    )
    embedding = np.abs(omega[0]).sum(axis=1)
    assert set(np.flatnonzero(embedding)) == {0, 1, 2, 3, 4, 5, 6}


def test_the_likelihood_of_a_sentence_teaches_the_one_before():
    bmi = wrapped(language_model(tied=False), phase_two="raml")
    bmi.set_phase(1)
    (tokens, start, pairs), targets, weights = batch(pairs=2)
    only = np.array([[[1, 2, 0]], [[1, 2, 0]]], np.int32)
    behind = np.array([[[7, 8, 0]], [[7, 8, 0]]], np.int32)
    pairs = pairs._replace(
        first=only, second=behind, negatives=behind[:, :, None], proposal=behind
    )
    omega, _ = _gradients(bmi, "raml", ((tokens, start, pairs), targets, weights))
    assert set(np.flatnonzero(np.abs(omega[0]).sum(axis=1))) == {0, 1, 2, 7, 8}


def test_parts_are_clipped_apart():
    """Gradient descent at rate 1 moves each part by its clipping norm."""
    bmi = wrapped(clip_norm=0.01, weight=5.0)
    bmi.compile(keras.optimizers.SGD(1.0), keras.optimizers.SGD(1.0))
    layers = bmi.model, bmi.discriminator
    before = [layer.get_weights() for layer in layers]
    bmi.train_on_batch(*batch())
    for layer, weights in zip(layers, before, strict=True):
        moves = [a - b for a, b in zip(layer.get_weights(), weights, strict=True)]
        norm = np.sqrt(sum(np.sum(move**2) for move in moves))
        assert norm == pytest.approx(0.01, rel=1e-4)


def test_what_each_part_is_clipped_to():
    """What is given, or the language model has, or 0.25; not what clips terms apart."""
    apart = InducedModelMatching(
        language_model(dtype="float32"),
        KneserNey(2).fit(TEXT, V),
        InBatchContexts(separate_clipping=True),
        clip_norm=0.3,
    )
    for bmi, expected in (
        (wrapped(), {"model": 0.25, "discriminator": 0.25}),
        (wrapped(language_model(clip_norm=5.0)), {"model": 5.0, "discriminator": 0.25}),
        (wrapped(clip_norm=0.1), {"model": 0.1, "discriminator": 0.1}),
        (wrapped(apart), {"discriminator": 0.25}),
    ):
        bmi.compile("sgd", "adam")
        assert bmi.optimizer.clip_norms == expected
        if bmi.model is apart:
            continue  # A config has no contexts, which is where clipping apart is said.
        again = BootstrappedMutualInformation.from_config(bmi.get_config())
        again.compile("sgd")
        assert again.optimizer.clip_norms == expected


@pytest.mark.landing
@pytest.mark.graph
@pytest.mark.parametrize("phase", [0, 1])
def test_two_replicas_equal_one(two_replicas, phase):
    """Three pairs: those of the second replica are one, and one that fills up."""
    (tokens, start, pairs), targets, weights = batch(pairs=3)

    def make():
        inner = language_model(0.3, dtype="float32", clip_norm=0.1)
        bmi = wrapped(inner, phase_two="raml", scale="batch")
        bmi.set_phase(phase)
        return bmi

    element = ((tokens, start, tuple(pairs)), targets, weights)
    assert_two_replicas_equal_one(two_replicas, make, [element] * 2)


# === Other models, files ===


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


def test_phase_two_begins_from_a_file_of_phase_one(tmp_path):
    bmi = wrapped(language_model(dtype="float32"))
    bmi.compile(keras.optimizers.SGD(0.1))
    bmi.train_on_batch(*batch())
    bmi.save(tmp_path / "model.keras")
    first = rlm_tf.load_model(tmp_path / "model.keras")
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
    bmi = wrapped(language_model(dtype="mixed_float16"))
    bmi.compile(keras.optimizers.Adam(0.1))
    bmi.train_on_batch(*batch())
    bmi.save(tmp_path / "model.keras")
    again = rlm_tf.load_model(tmp_path / "model.keras")
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
