"""Reduction, clipping and distribution of named terms, against hand-made gradients."""

from __future__ import annotations

import functools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import gradients as gradient_lists
from rlm_tf.models import ObjectiveModel, Term
from tests.replica_steps import assert_two_replicas_equal_one

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager


class TwoTerms(ObjectiveModel):
    """Squares and fourth powers of `x . w + e[id]`, with options for both terms."""

    def __init__(self, *, first=None, second=None, regulariser=0.0, **kwargs):
        super().__init__(term_names=("square", "fourth"), **kwargs)
        self.w = self.add_weight(name="w", shape=(3,), initializer="ones")
        self.e = keras.layers.Embedding(4, 1, embeddings_initializer="ones")
        self.e.build()
        self.first, self.second = first or {}, second or {}
        self.regulariser = regulariser
        self.built = True

    @property
    def differentiates_apart(self):
        return "clip_norm" in self.first or "clip_norm" in self.second

    def call(self, inputs):
        x, ids = inputs
        return tf.linalg.matvec(x, tf.convert_to_tensor(self.w)) + self.e(ids)[:, 0]

    def _fourth(self, error):
        return None if "loss_and_gradient" in self.second else error**4

    def objective_terms(self, x, y, sample_weight, training):
        error = self(x) - y
        if self.regulariser:
            self.add_loss(self.regulariser * tf.reduce_sum(tf.square(self.w)))
        return [
            Term("square", error**2, sample_weight, **self.first),
            Term("fourth", self._fourth(error), **self.second),
        ]


def _batch(rng, size=4):
    x = rng.normal(size=(size, 3)).astype(np.float32)
    ids = rng.integers(4, size=size).astype(np.int32)
    y = rng.normal(size=size).astype(np.float32)
    weights = rng.uniform(size=size).astype(np.float32)
    weights[0] = 0.0
    return (x, ids), y, weights


def _gradients(batch, power, weights):
    """The gradient of the weighted mean of `|error| ** power` in float64."""
    (x, ids), y, _ = batch
    error = x.sum(axis=1).astype(np.float64) + 1.0 - y
    slope = power * error ** (power - 1) * weights / weights.sum()
    to_e = np.bincount(ids, slope, minlength=4)
    return np.concatenate([x.T @ slope, to_e])


def _step(model, batch, rate=0.1, steps=1, optimizer=None):
    model.compile(optimizer or keras.optimizers.SGD(rate))
    before = np.concatenate([np.ravel(v) for v in model.get_weights()])
    data = tf.data.Dataset.from_tensors(batch)
    history = model.fit(data, epochs=steps, verbose=0, shuffle=False)
    after = np.concatenate([np.ravel(v) for v in model.get_weights()])
    return (before - after) / rate, history.history


def _clip(gradient, norm):
    return gradient * min(1.0, norm / np.linalg.norm(gradient))


@pytest.mark.graph
@pytest.mark.parametrize("jit_compile", [False, True])
def test_step_follows_the_weighted_means(rng, jit_compile):
    batch = _batch(rng)
    model = TwoTerms(second={"coefficient": 0.3}, loss_scale=7.0)
    model.compile(keras.optimizers.SGD(0.1), jit_compile=jit_compile)
    before = np.concatenate([np.ravel(v) for v in model.get_weights()])
    logs = model.fit(tf.data.Dataset.from_tensors(batch), verbose=0, shuffle=False)
    after = np.concatenate([np.ravel(v) for v in model.get_weights()])
    expected = 7.0 * (
        _gradients(batch, 2, batch[2]) + 0.3 * _gradients(batch, 4, np.ones(4))
    )
    np.testing.assert_allclose((before - after) / 0.1, expected, rtol=1e-3, atol=1e-4)
    (x, _), y, weights = batch
    error = x.sum(axis=1) + 1.0 - y
    square = np.average(error**2, weights=weights)
    fourth = np.mean(error**4)
    np.testing.assert_allclose(logs.history["square"], [square], rtol=1e-5)
    np.testing.assert_allclose(logs.history["fourth"], [fourth], rtol=1e-5)
    np.testing.assert_allclose(logs.history["loss"], [square + 0.3 * fourth], rtol=1e-5)


def test_each_term_is_clipped_before_its_coefficient(rng):
    batch = _batch(rng)
    moved, _ = _step(
        TwoTerms(
            first={"clip_norm": 0.5}, second={"clip_norm": 0.25, "coefficient": 0.3}
        ),
        batch,
    )
    expected = _clip(_gradients(batch, 2, batch[2]), 0.5)
    expected += 0.3 * _clip(_gradients(batch, 4, np.ones(4)), 0.25)
    np.testing.assert_allclose(moved, expected, rtol=1e-3, atol=1e-5)


def test_clip_of_one_term_leaves_the_other_alone(rng):
    batch = _batch(rng)
    moved, _ = _step(TwoTerms(second={"clip_norm": 0.25}), batch)
    expected = _gradients(batch, 2, batch[2])
    expected += _clip(_gradients(batch, 4, np.ones(4)), 0.25)
    np.testing.assert_allclose(moved, expected, rtol=1e-3, atol=1e-4)


def test_terms_are_differentiated_apart_where_a_model_says_so(rng, monkeypatch):
    model = TwoTerms(second={"variable_factor": lambda v: 1.0})
    with pytest.raises(ValueError, match=r"apart \(fourth: .*override `different"):
        _step(model, _batch(rng))
    monkeypatch.setattr(TwoTerms, "differentiates_apart", True)
    moved, _ = _step(model, batch := _batch(rng))
    expected = _gradients(batch, 2, batch[2]) + _gradients(batch, 4, np.ones(4))
    np.testing.assert_allclose(moved, expected, rtol=1e-3, atol=1e-4)


def test_total_is_clipped_after_the_sum(rng):
    batch = _batch(rng)
    moved, _ = _step(TwoTerms(clip_norm=0.5, second={"coefficient": 0.3}), batch)
    total = _gradients(batch, 2, batch[2]) + 0.3 * _gradients(batch, 4, np.ones(4))
    np.testing.assert_allclose(moved, _clip(total, 0.5), rtol=1e-3, atol=1e-5)


def test_a_term_may_bring_its_own_gradient_and_variable_factors(rng):
    batch = _batch(rng)
    seen = []

    def loss_and_gradient(variables, scale):
        seen.append(scale.shape)
        ones = [tf.ones(v.shape) * tf.reduce_sum(scale) for v in variables]
        return tf.fill(scale.shape, 2.5), ones

    model = TwoTerms(
        second={
            "weights": tf.ones(4),
            "loss_and_gradient": loss_and_gradient,
            "coefficient": 0.5,
            "variable_factor": lambda v: 3.0 if "embed" in v.path else 1.0,
        }
    )
    moved, logs = _step(model, batch)
    expected = _gradients(batch, 2, batch[2]) + 0.5 * np.repeat([1.0, 3.0], [3, 4])
    assert seen[0] == [4]
    np.testing.assert_allclose(logs["fourth"], [2.5])
    np.testing.assert_allclose(moved, expected, rtol=1e-3, atol=1e-4)


def test_positions_of_weight_zero_may_hold_anything(rng):
    (x, ids), y, weights = _batch(rng)
    y[0] = np.inf
    _, logs = _step(TwoTerms(second={"coefficient": 0.0}), ((x, ids), y, weights))
    assert np.isfinite(logs["square"][0])


def test_regularisation_losses_are_added(rng):
    batch = _batch(rng)
    plain, _ = _step(TwoTerms(), batch)
    moved, _ = _step(TwoTerms(regulariser=0.5), batch)
    expected = plain + np.repeat([1.0, 0.0], [3, 4])
    np.testing.assert_allclose(moved, expected, rtol=1e-3, atol=1e-4)


OPTIONS = [
    {},
    {"clip_norm": 0.5},
    {"first": {"clip_norm": 0.5}, "second": {"clip_norm": 0.25, "coefficient": 0.3}},
    {"second": {"clip_norm": 0.25}, "clip_norm": 0.6, "regulariser": 0.5},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_two_replicas_equal_one_device(rng, two_replicas, options):
    batches = [_batch(rng, 8), _batch(rng, 8)]
    assert_two_replicas_equal_one(
        two_replicas, lambda: TwoTerms(**options), batches, rate=0.01
    )


@pytest.mark.parametrize("options", OPTIONS[1:3])
def test_loss_scaling_of_float16_clips_in_scaled_units(rng, options):
    batch = _batch(rng)
    plain, _ = _step(TwoTerms(**options), batch)
    scaled, _ = _step(
        TwoTerms(**options),
        batch,
        optimizer=keras.optimizers.LossScaleOptimizer(
            keras.optimizers.SGD(0.1), initial_scale=1024.0
        ),
    )
    np.testing.assert_allclose(scaled, plain, rtol=1e-4, atol=1e-5)


def test_an_overflow_on_any_replica_skips_the_step(rng, two_replicas):
    (x, ids), y, weights = _batch(rng, 4)
    x[2:] = 1e30  # Of the second replica alone.
    with two_replicas.scope():
        model = TwoTerms()
        model.compile(
            keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), 1024.0)
        )
        model.optimizer.build(model.trainable_variables)
    before = model.get_weights()
    data = tf.data.Dataset.from_tensors(((x, ids), y, weights)).unbatch().batch(4)
    batch = next(iter(two_replicas.experimental_distribute_dataset(data)))
    two_replicas.run(model.train_step, args=(batch,))
    assert model.optimizer.dynamic_scale.numpy() == 512.0
    for weight, earlier in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(weight, earlier)


def test_evaluation_returns_the_weighted_means(rng):
    batch = _batch(rng)
    model = TwoTerms()
    model.compile(keras.optimizers.SGD(0.1))
    data = tf.data.Dataset.from_tensor_slices(batch).batch(3)
    logs = model.evaluate(data, return_dict=True, verbose=0)
    (x, _), y, weights = batch
    error = x.sum(axis=1) + 1.0 - y
    expected = np.average(error**2, weights=weights)
    np.testing.assert_allclose(logs["square"], expected, rtol=1e-5)


@pytest.mark.graph
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_data_of_unknown_length_count_once(rng, replicas, two_replicas):
    """Where data end is known only when a step finds none; it must leave no trace."""
    batches = [_batch(rng)[:2] for _ in range(3)]
    slices = tuple(
        np.stack(parts) for parts in zip(*[x for x, _ in batches], strict=True)
    )
    known = tf.data.Dataset.from_tensor_slices(
        (slices, np.stack([y for _, y in batches]))
    )
    unknown = known.filter(lambda *_: True)
    assert unknown.cardinality() == tf.data.UNKNOWN_CARDINALITY
    strategy = two_replicas if replicas == 2 else tf.distribute.get_strategy()
    results = []
    for data in (known, unknown):
        with strategy.scope():
            model = TwoTerms(clip_norm=1.0)
            model.compile(keras.optimizers.Adam(0.1))
        history = model.fit(data, epochs=2, shuffle=False, verbose=0).history
        evaluated = model.evaluate(data, verbose=0, return_dict=True)
        weights = [np.array(value) for value in model.get_weights()]
        assert model.optimizer.iterations.numpy() == 6
        results.append((history, evaluated, weights))
    (history, evaluated, weights), (history_2, evaluated_2, weights_2) = results
    for name in history:
        np.testing.assert_allclose(history_2[name], history[name], rtol=1e-6)
        np.testing.assert_allclose(evaluated_2[name], evaluated[name], rtol=1e-6)
    for value, value_2 in zip(weights, weights_2, strict=True):
        np.testing.assert_allclose(value_2, value, rtol=1e-6)


def test_an_infinite_norm_clips_nothing():
    norms = tf.constant([0.0, 1e-3, 1.0, 1e30, math.inf, math.nan])
    found = gradient_lists.clip_factor(norms, math.inf)
    np.testing.assert_array_equal(found, [1, 1, 1, 1, math.nan, math.nan])
    found = gradient_lists.clip_factor(norms, 2.0)
    np.testing.assert_allclose(found, [1, 1, 1, 2e-30, math.nan, math.nan], rtol=1e-6)


@pytest.mark.eager
@pytest.mark.parametrize(
    "options", [{"clip_norm": math.inf}, {"second": {"clip_norm": math.inf}}]
)
def test_a_step_clipped_to_infinity_is_a_step_that_is_not(rng, options):
    batch = _batch(rng)
    moved, _ = _step(TwoTerms(**options), batch)
    plain, _ = _step(TwoTerms(), batch)
    np.testing.assert_allclose(moved, plain, rtol=1e-6)


def test_sparse_gradients_have_the_norm_of_dense_ones():
    slices = tf.IndexedSlices(
        tf.constant([[3.0], [1.0], [-3.0]]), tf.constant([2, 0, 2]), tf.constant([4, 1])
    )
    merged = gradient_lists.deduplicate(slices)
    np.testing.assert_allclose(gradient_lists.global_norm([merged, None]), 1.0)
    total = gradient_lists.add([merged], [merged])[0]
    np.testing.assert_allclose(tf.convert_to_tensor(total)[:, 0], [2.0, 0.0, 0.0, 0.0])


def test_wrong_options_are_named():
    with pytest.raises(ValueError, match="TwoTerms: `clip_norm` must be positive"):
        TwoTerms(clip_norm=0.0)
    with pytest.raises(ValueError, match="TwoTerms: `loss_scale` must be positive"):
        TwoTerms(loss_scale=-1.0)


@pytest.mark.parametrize(
    "given", [{"loss": "mse"}, {"metrics": ["mae"]}, {"weighted_metrics": ["mae"]}]
)
def test_losses_and_metrics_of_compile_are_refused(given):
    with pytest.raises(ValueError, match=f"leave `{next(iter(given))}` out"):
        TwoTerms().compile("sgd", **given)


@pytest.mark.graph
@pytest.mark.parametrize("steps", [1, 2])
def test_a_step_is_traced_once(rng, steps):
    """Though the optimiser has yet to make its moments."""
    traced = []

    class Counted(TwoTerms):
        def objective_terms(self, *arguments, **options):
            traced.append(self.optimizer.built)
            return super().objective_terms(*arguments, **options)

    model = Counted()
    model.compile(keras.optimizers.Adam(0.1), steps_per_execution=steps)
    (x, ids), y, weights = _batch(rng, 8)
    data = tf.data.Dataset.from_tensor_slices(((x, ids), y, weights))
    model.fit(data.batch(2), epochs=2, verbose=0)
    # Keras traces an execution of several steps for each of them.
    assert traced == [True] * len(traced) and len(traced) <= steps


@pytest.mark.parametrize("asked", [None, True, False])
def test_data_sets_are_tuned_where_they_ask(asked, rng, monkeypatch):
    """What tunes may sleep on at the end of an epoch, and `fit()` would wait."""
    seen = []

    def note(name):
        original = getattr(keras.Model, name)

        @functools.wraps(original)
        def noted(self, *args, **kwargs):
            for data in (*args, *kwargs.values()):
                if isinstance(data, tf.data.Dataset):
                    seen.append(data.options().autotune.enabled)
            return original(self, *args, **kwargs)

        monkeypatch.setattr(keras.Model, name, noted)

    note("fit")
    note("evaluate")
    data = tf.data.Dataset.from_tensors(_batch(rng))
    if asked is not None:
        options = tf.data.Options()
        options.autotune.enabled = asked
        data = data.with_options(options)
    model = TwoTerms()
    model.compile("sgd")
    model.fit(data, verbose=0)
    model.evaluate(data, verbose=0)
    assert seen == 2 * [bool(asked)]
    model.fit(*_batch(rng)[:2], validation_data=data, verbose=0)
    assert set(seen) == {bool(asked)} and len(seen) > 2
