"""Tables of distributions, beliefs, and models of features."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import LinearDiscriminant
from rlm_tf.restricted import (
    BayesDiscriminant,
    Belief,
    BinnedModel,
    NeuralFeatureModel,
    TabularModel,
)


def _reloaded(layer: keras.layers.Layer, example: np.ndarray, path) -> keras.Model:
    inputs = keras.Input(example.shape[1:], dtype=example.dtype.name)
    model = keras.Model(inputs, layer(inputs))
    model.save(path)
    return keras.models.load_model(path).layers[-1]


# === Tables ===


def test_a_table_gives_its_rows():
    table = np.array([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]])
    model = TabularModel.from_probs(table)
    np.testing.assert_allclose(model.probs([1, 0, 1]), table[[1, 0, 1]], rtol=1e-6)
    assert model.log_probs([0])[0, 2] == -np.inf
    assert (model.vocabulary_size, model.context_length) == (3, 1)
    # A new one is uniform.
    np.testing.assert_allclose(TabularModel(2, 4).probs([1]), [[0.25] * 4], rtol=1e-6)


def test_contexts_need_not_be_outcomes():
    model = TabularModel.from_probs(np.full((9, 2), 0.5))
    assert model.log_probs([8]).shape == (1, 2)
    with pytest.raises(ValueError, match=r"must be ids in \[0, 9\), found 2..9"):
        model.log_probs([2, 9])


def test_mistaken_tables():
    with pytest.raises(ValueError, match=r"row 1 of `probs` sums to 0\.9"):
        TabularModel.from_probs([[0.5, 0.5], [0.5, 0.4]])
    with pytest.raises(ValueError, match=r"axes \[C V\] and no negative"):
        TabularModel.from_probs([[1.5, -0.5]])
    with pytest.raises(ValueError, match="`num_outcomes` must be an integer >= 1"):
        TabularModel(2, 0)


# === Beliefs ===


def test_completions_are_the_matrix(rng):
    matrix = np.zeros((3, 6))
    matrix[0, [1, 4]] = 0.25, 0.75
    matrix[1, [0]] = 1
    matrix[2, [2, 3, 5]] = 0.2, 0.3, 0.5
    belief = Belief.from_matrix(matrix)
    np.testing.assert_array_equal(belief.observe(np.arange(6)), [1, 0, 2, 2, 0, 2])
    states, log_weights = belief.completions(tf.constant([2, 0, 1]))
    found = np.zeros((3, 6))
    for row in range(3):
        np.add.at(found[row], states.numpy()[:, row], np.exp(log_weights[:, row]))
    np.testing.assert_allclose(found, matrix[[2, 0, 1]], rtol=1e-6)
    assert states.shape == (3, 3)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.5, 0.4]], "must sum to 1"),
        ([[1.5, -0.5]], "no negative entry"),
        ([[0.5, 0.5], [1.0, 0.0]], "state 0 stands behind 2"),
        ([[1.0, 0.0]], "state 1 stands behind 0"),
    ],
)
def test_mistaken_beliefs(matrix, message):
    with pytest.raises(ValueError, match=message):
        Belief.from_matrix(matrix)


# === The discriminant's Bayes predictor ===


@pytest.mark.parametrize(
    ("task", "x1", "expected"),
    [
        (LinearDiscriminant(), -0.9, 0.15125),
        (LinearDiscriminant(), -0.5, 0.28125),
        (LinearDiscriminant(), 0.0, 0.5),
        (LinearDiscriminant(), 0.3, 0.63875),
        (LinearDiscriminant(), 0.8, 0.82),
        (LinearDiscriminant(low=0.0), 0.0, 1.0),
        # One unseen feature, and none that matters.
        (LinearDiscriminant((1.0, 2.0, 0.0), 0.5), 0.1, 0.5 + 0.6 / 4),
        (LinearDiscriminant((1.0, 0.0, 0.0)), 0.2, 1.0),
        (LinearDiscriminant((1.0, 0.0, 0.0)), 0.0, 0.0),
    ],
)
def test_known_probabilities(task, x1, expected):
    found = task.restricted().positive_probs([[x1]]).numpy()
    np.testing.assert_allclose(found, [expected], atol=1e-12)


@pytest.mark.parametrize(
    "task",
    [
        LinearDiscriminant((1.0, -0.5, 0.25), 0.1, -1.0, 1.0),
        LinearDiscriminant((0.0, 2.0, -3.0), -0.4, 0.0, 1.0),
        LinearDiscriminant((-1.0, 1.0, 1.0), 2.0, -3.0, 1.5),
        LinearDiscriminant((1.0, 0.0, -2.0), 0.3, 0.0, 1.0),
    ],
)
def test_quadrature_agrees(task):
    """The midpoint rule on the unseen square: its error is of the order of a cell."""
    count = 1000
    line = task.low + (np.arange(count) + 0.5) / count * (task.high - task.low)
    x2, x3 = np.meshgrid(line, line)
    a, b, c = task.coefficients
    x1 = np.linspace(task.low, task.high, 7)
    expected = [np.mean(a * x + b * x2 + c * x3 + task.offset > 0) for x in x1]
    found = task.restricted().positive_probs(x1[:, None]).numpy()
    np.testing.assert_allclose(found, expected, atol=3 / count)


def test_other_features_may_be_the_short_context(rng):
    task = LinearDiscriminant((1.0, -2.0, 0.5, 1.5), 0.2, -1.0, 2.0)
    model = task.restricted((3, 1))
    x, y = task.sample(400_000, rng)
    near = (np.abs(x[:, 3] - 0.5) < 0.1) & (np.abs(x[:, 1] - 0.7) < 0.1)
    found = model.probs([[0.5, 0.7]]).numpy()[0]
    assert found.sum() == pytest.approx(1, abs=1e-6)
    error = np.sqrt(found[0] * found[1] / near.sum())
    assert abs(y[near].mean() - found[1]) < 4 * error + 0.01


def test_all_features_seen_leaves_no_doubt():
    model = BayesDiscriminant((1.0, 1.0), short_features=(0, 1))
    np.testing.assert_array_equal(model.probs([[0.5, -0.4], [0.5, -0.6]])[:, 1], [1, 0])


@pytest.mark.parametrize("small", [1e-4, 1e-7, 1e-9, 1e-16, 1e-18])
def test_features_that_hardly_matter(small):
    """Exact up to what such a feature may change, however small it is."""
    seen = np.linspace(-1, 1, 9)[:, np.newaxis]
    for coefficients in ((1.0, small, 1.0), (1.0, small, 1.0, small)):
        found = BayesDiscriminant(coefficients).positive_probs(seen)
        without = BayesDiscriminant((1.0, 1.0)).positive_probs(seen)
        np.testing.assert_allclose(found, without, atol=small + 1e-8)
    # Off the middle of the cube, what is left out stays in the mean.
    found = BayesDiscriminant((1.0, 1e-9, 1.0), -1e-9, low=0.0, high=2.0)
    without = BayesDiscriminant((1.0, 1.0), low=0.0, high=2.0)
    np.testing.assert_allclose(
        found.positive_probs(seen), without.positive_probs(seen), atol=1e-9
    )


def test_the_scale_of_the_coefficients_does_not_matter():
    seen = np.linspace(-1, 1, 9)[:, np.newaxis]
    expected = BayesDiscriminant((1.0, -2.0, 0.5), 0.3).positive_probs(seen)
    for scale in (1e-200, 1e200):
        coefficients = np.array([1.0, -2.0, 0.5]) * scale
        found = BayesDiscriminant(coefficients, 0.3 * scale).positive_probs(seen)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_labels_follow_their_points(rng):
    task = LinearDiscriminant((1.0, -0.5, 0.25), 0.1)
    x, y = task.sample(50, rng, 4)
    assert x.shape == (4, 50, 3) and x.dtype == np.float32 and y.dtype == np.int32
    np.testing.assert_array_equal(y, x @ np.array(task.coefficients) + 0.1 > 0)
    assert x.min() >= -1 and x.max() <= 1


def test_mistaken_tasks(rng):
    with pytest.raises(ValueError, match="`low` must be below `high`"):
        LinearDiscriminant(low=1.0).sample(3, rng)
    with pytest.raises(ValueError, match="must not be empty, and all numbers finite"):
        LinearDiscriminant((1.0, np.nan)).sample(3, rng)
    with pytest.raises(ValueError, match=r"distinct numbers in \[0, 3\)"):
        BayesDiscriminant(short_features=(3,))
    with pytest.raises(ValueError, match=r"at most 16 features .* found 17"):
        BayesDiscriminant(np.ones(18))
    with pytest.raises(ValueError, match="numbers must be finite and `low` below"):
        BayesDiscriminant(low=2.0)
    with pytest.raises(ValueError, match=r"axes \[N 1\], found shape \(2, 2\)"):
        BayesDiscriminant().log_probs(np.zeros((2, 2)))


# === Counts in bins ===


def test_bins_by_hand():
    model = BinnedModel(2, 2, low=0.0, high=2.0, add=1.0)
    model.fit([0.1, 0.2, 0.9, 1.5, 7.0], [1, 1, 0, 0, 0])
    # Bins: (1 + 1, 2 + 1) of five, (2 + 1, 0 + 1) of four; centres 0.5 and 1.5.
    expected = [[0.4, 0.6], [0.4, 0.6], [0.575, 0.425], [0.75, 0.25], [0.75, 0.25]]
    found = model.probs([[-3.0], [0.5], [1.0], [1.5], [9.0]])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_ample_pairs_give_the_bayes_predictor(rng):
    task = LinearDiscriminant()
    x, y = task.sample(400_000, rng)
    fitted = BinnedModel(40).fit(x[:, 0], y)
    at = np.linspace(-0.95, 0.95, 39)[:, None]
    exact = task.restricted().probs(at)
    np.testing.assert_allclose(fitted.probs(at), exact, atol=0.02)


def test_mistaken_pairs():
    model = BinnedModel(3)
    with pytest.raises(ValueError, match="vectors of one length and finite"):
        model.fit([0.1, np.inf], [0, 1])
    with pytest.raises(ValueError, match=r"integers in \[0, 2\)"):
        model.fit([0.1, 0.2], [0, 2])
    with pytest.raises(ValueError, match="`low` must be below `high` and `add`"):
        BinnedModel(3, add=0.0)


# === Files ===


@pytest.mark.parametrize(
    ("layer", "example"),
    [
        (
            BayesDiscriminant((1.0, 2.0, -1.0), 0.3, 0.0, 2.0, (2, 0)),
            np.array([[0.3, 1.2], [1.9, 0.1]]),
        ),
        (BinnedModel(5, 3, 0.0, 2.0, 0.7).fit([0.1, 1.9], [2, 0]), np.array([[0.4]])),
    ],
)
def test_files_keep_feature_models(layer, example, tmp_path):
    loaded = _reloaded(layer, example, tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(example), layer(example))
    assert loaded.get_config() == layer.get_config()


# === Networks ===


def test_a_network_learns_pairs_and_stays_frozen(rng):
    network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    model = NeuralFeatureModel(network)
    assert (model.num_features, model.num_outcomes) == (2, 3)
    features = rng.normal(size=(300, 2)).astype(np.float32)
    outcomes = (features @ [[1, 0, -1], [0, 1, -1]]).argmax(axis=1)
    before = model.log_probs(features).numpy()[np.arange(300), outcomes].mean()
    model.fit_pairs(features, outcomes, epochs=20, learning_rate=0.05)
    after = model.log_probs(features).numpy()[np.arange(300), outcomes].mean()
    assert after > before + 0.3
    assert not model.trainable_variables
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model.log_probs(features))
    variables = [variable.value for variable in network.variables]
    assert tape.gradient(loss, variables) == [None, None]


def test_networks_of_other_shapes_are_refused():
    with pytest.raises(ValueError, match=r"map features \[N L\] to logits \[N V\]"):
        NeuralFeatureModel(
            keras.Sequential([keras.Input((2, 2)), keras.layers.Dense(3)])
        )
