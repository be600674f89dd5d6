"""Each part has its own optimiser, wherever one optimiser may be."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.optimizers import DecoupledOptimizer
from rlm_tf.optimizers.decoupled_optimizer import decoupled_part_of
from rlm_tf.training import BestWeights, LearningRateHalving, MetricsLog
from rlm_tf.training.learning_rate import get_learning_rates, set_learning_rate
from rlm_tf.training.metrics_log import read_metrics_log
from tests.objective_model.declared_models import (
    FEATURES,
    TwoParts,
    batch,
    data,
    weights_of,
)
from tests.references.transformers_reference import ORACLE

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager

SGD, ADAM = keras.optimizers.SGD, keras.optimizers.Adam
GENERATOR, DISCRIMINATOR = slice(0, FEATURES + 1), slice(FEATURES + 1, None)


def _optimizer(**options):
    return DecoupledOptimizer(
        {"generator": SGD(0.1, momentum=0.9), "discriminator": ADAM(0.01)}, **options
    )


def _trained(optimizer, epochs=2, **options):
    model = TwoParts(**options)
    model.compile(optimizer)
    model.fit(data(), epochs=epochs, verbose=0, shuffle=False)
    return model


def _moved(optimizer, gradients):
    """Returns where scalars get from 0 by the oracle's steps."""
    variables = [tf.Variable(0.0, dtype=tf.float64) for _ in gradients]
    optimizer.build(variables)
    for step in zip(*gradients, strict=True):
        optimizer.apply([tf.constant(g, tf.float64) for g in step], variables)
    return [float(variable) for variable in variables]


@pytest.mark.parametrize("weight", [1, 50])
def test_adam_of_the_oracle(weight):
    """A generator's, a detector's and a shared scalar, whose loss has a factor."""
    case = ORACLE["adam_and_lambda"]
    shared = np.add(
        case["shared_gradient_of_generator_loss"],
        weight * np.array(case["shared_gradient_of_detector_loss"]),
    )
    detector = weight * np.array(case["detector_gradient"])
    gradients = [case["generator_gradient"], detector, shared]

    def adam(epsilon, rate=case["learning_rate"]):
        return ADAM(rate, case["beta_1"], case["beta_2"], epsilon)

    for name, epsilon in (("eps0", 1e-30), ("eps1e-6_keras", 1e-6)):
        expected = case["after"][f"lambda{weight}_{name}"]
        np.testing.assert_allclose(_moved(adam(epsilon), gradients), expected, 1e-5)
    norm = np.linalg.norm(gradients, axis=0)
    clipped = gradients * np.minimum(1, case["joint_clip_norm"] / norm)
    expected = case["after"][f"lambda{weight}_eps0_joint_clip"]
    np.testing.assert_allclose(_moved(adam(1e-30), clipped), expected, 1e-5)
    if weight == 50:
        found = [
            _moved(adam(1e-6, rate), [np.clip(own, -0.25, 0.25)])[0]
            for rate, own in ((2e-4, gradients[0]), (1.5e-3, gradients[1]))
        ]
        name = "decoupled_lambda50_rates_2e-4_1.5e-3_eps1e-6_keras_clip_per_part"
        np.testing.assert_allclose(found, case[name], 1e-5)


@pytest.mark.graph
def test_each_part_takes_the_steps_of_its_optimiser():
    """The terms of the toy share no variable, so its parts train as they do alone."""
    together = weights_of(_trained(_optimizer()))
    by_sgd = weights_of(_trained(SGD(0.1, momentum=0.9)))
    by_adam = weights_of(_trained(ADAM(0.01)))
    np.testing.assert_allclose(together[GENERATOR], by_sgd[GENERATOR], rtol=1e-6)
    np.testing.assert_allclose(
        together[DISCRIMINATOR], by_adam[DISCRIMINATOR], rtol=1e-6
    )
    assert np.abs(by_sgd - by_adam).max() > 1e-2


def test_a_part_is_clipped_by_its_own_norm():
    rate = 0.1
    free = {"generator": SGD(rate), "discriminator": SGD(rate)}
    before = weights_of(TwoParts())
    moved = before - weights_of(_first_step(DecoupledOptimizer(free)))
    norm = np.linalg.norm(moved[GENERATOR]) / rate
    optimizers = {"generator": SGD(rate), "discriminator": SGD(rate)}
    clips = {"generator": norm / 4}
    model = _first_step(DecoupledOptimizer(optimizers, clips))
    clipped = before - weights_of(model)
    np.testing.assert_allclose(clipped[GENERATOR], moved[GENERATOR] / 4, rtol=1e-4)
    np.testing.assert_allclose(clipped[DISCRIMINATOR], moved[DISCRIMINATOR], rtol=1e-5)


def _first_step(optimizer):
    model = TwoParts()
    model.compile(optimizer)
    model.fit(*batch(), batch_size=8, verbose=0, shuffle=False)
    return model


@pytest.mark.parametrize(
    "scaled", [pytest.param(False, marks=pytest.mark.landing), True]
)
def test_two_replicas_equal_one(two_replicas, scaled):
    def made():
        optimizer = _optimizer(clip_norms={"generator": 0.5, "discriminator": 0.7})
        if scaled:
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer, 1024.0)
        return optimizer

    if scaled:
        # Gradients of the loss that is scaled are clipped when they are scaled back.
        plain = weights_of(
            _trained(_optimizer(clip_norms={"generator": 0.5, "discriminator": 0.7}))
        )
    alone = weights_of(_trained(made()))
    if scaled:
        np.testing.assert_allclose(alone, plain, atol=1e-6)
    with two_replicas.scope():
        model = TwoParts()
        model.compile(made())
    model.fit(data(), epochs=2, verbose=0, shuffle=False)
    np.testing.assert_allclose(weights_of(model), alone, atol=3e-7)


def test_half_precision_trains():
    model = _trained(_optimizer(), dtype="mixed_float16")
    assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
    # The layers of the toy are in single precision; only the optimiser is another.
    np.testing.assert_allclose(
        weights_of(model), weights_of(_trained(_optimizer())), atol=1e-5
    )


def test_a_file_keeps_it_with_all_moments(tmp_path):
    clips = {"generator": 0.5}
    whole = _trained(_optimizer(clip_norms=clips), epochs=4)
    half = _trained(_optimizer(clip_norms=clips), epochs=2)
    half.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.optimizer.clip_norms == clips
    assert len(loaded.optimizer.variables) == len(half.optimizer.variables)
    for name, optimizer in loaded.optimizer.by_part.items():
        assert type(optimizer) is type(half.optimizer.by_part[name])
        assert int(optimizer.iterations.numpy()) == 8
    loaded.fit(data(), epochs=2, verbose=0, shuffle=False)
    np.testing.assert_array_equal(weights_of(loaded), weights_of(whole))
    checkpoint = tf.train.Checkpoint(model=half)
    path = checkpoint.save(str(tmp_path / "checkpoint"))
    fresh = _trained(_optimizer(clip_norms=clips), epochs=1)
    tf.train.Checkpoint(model=fresh).restore(path)
    fresh.fit(data(), epochs=2, verbose=0, shuffle=False)
    np.testing.assert_array_equal(weights_of(fresh), weights_of(whole))


def test_learning_rates_are_read_set_logged_and_lowered_together(tmp_path):
    log = MetricsLog(tmp_path / "log.jsonl")
    halving = LearningRateHalving("loss", min_gain=1e9)
    model = TwoParts()
    model.compile(_optimizer())
    model.fit(data(1), epochs=3, verbose=0, shuffle=False, callbacks=[log, halving])
    rows = read_metrics_log(tmp_path / "log.jsonl")
    for row, factor in zip(rows, (1.0, 1.0, 0.5), strict=True):
        assert row["learning_rate/generator"] == pytest.approx(0.1 * factor)
        assert row["learning_rate/discriminator"] == pytest.approx(0.01 * factor)
    set_learning_rate(model, 1.0)
    rates = {"generator": 1.0, "discriminator": 0.1}
    assert get_learning_rates(model) == pytest.approx(rates)
    model.optimizer.set_learning_rate("discriminator", 0.3)
    assert model.optimizer.learning_rates["discriminator"] == pytest.approx(0.3)
    model.optimizer.set_learning_rate("generator", 0.0)
    with pytest.raises(ValueError, match="which is 0; use `set_learning_rate"):
        set_learning_rate(model, 1.0)


def test_a_part_may_have_a_schedule():
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([3], [0.1, 0.0])
    model = TwoParts()
    model.compile(
        DecoupledOptimizer({"generator": SGD(schedule), "discriminator": SGD(0.1)})
    )
    model.fit(data(4), verbose=0, shuffle=False)
    before = weights_of(model)
    model.fit(data(4), verbose=0, shuffle=False)
    after = weights_of(model)
    np.testing.assert_array_equal(after[GENERATOR], before[GENERATOR])
    assert np.all(after[DISCRIMINATOR] != before[DISCRIMINATOR])
    with pytest.raises(ValueError, match="the optimiser of `generator` needs a number"):
        model.fit(data(1), verbose=0, callbacks=[LearningRateHalving("loss")])


def _trained_with(callback, *, scaled, **options):
    optimizer = _optimizer()
    if scaled:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, 1024.0)
    model = TwoParts()
    model.compile(optimizer)
    options = {"epochs": 3, "verbose": 0, "shuffle": False, **options}
    history = model.fit(data(1), callbacks=[callback], **options)
    return model, history


@pytest.mark.parametrize("scaled", [False, True])
def test_reduce_on_plateau_lowers_the_rate_of_every_part(scaled):
    plateau = keras.callbacks.ReduceLROnPlateau(
        "loss", factor=0.5, patience=1, min_delta=1e9
    )
    model, _ = _trained_with(plateau, scaled=scaled)
    rates = {"generator": 0.025, "discriminator": 0.0025}
    assert get_learning_rates(model) == pytest.approx(rates)


@pytest.mark.parametrize("scaled", [False, True])
def test_a_scheduler_moves_the_rate_of_every_part(scaled):
    """With scaled losses Keras sees one rate, the first part's, and ratios stay."""
    halves = keras.callbacks.LearningRateScheduler(lambda _, rate: rate / 2)
    model, _ = _trained_with(halves, scaled=scaled, epochs=2)
    rates = {"generator": 0.025, "discriminator": 0.0025}
    assert get_learning_rates(model) == pytest.approx(rates)
    equal = keras.callbacks.LearningRateScheduler(lambda _: 0.5)
    model, _ = _trained_with(equal, scaled=scaled, epochs=1)
    rates = {"generator": 0.5, "discriminator": 0.05 if scaled else 0.5}
    assert get_learning_rates(model) == pytest.approx(rates)


@pytest.mark.parametrize("scaled", [False, True])
def test_tensorboard_logs_every_rate(scaled, tmp_path):
    board = keras.callbacks.TensorBoard(tmp_path, write_graph=False)
    model, _ = _trained_with(board, scaled=scaled)
    (path,) = (tmp_path / "train").glob("*")
    written = path.read_bytes()
    for optimizer in decoupled_part_of(model.optimizer).optimizers:
        assert f"epoch_learning_rate_{optimizer.name}".encode() in written


@pytest.mark.parametrize("scaled", [False, True])
def test_swapped_averages_are_those_of_the_parts_that_have_them(scaled):
    def losses(optimizer, callbacks):
        if scaled:
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer, 1024.0)
        model = TwoParts()
        model.compile(optimizer)
        history = model.fit(
            data(2),
            validation_data=data(1),
            epochs=2,
            verbose=0,
            shuffle=False,
            callbacks=callbacks,
        )
        return history.history, weights_of(model)

    def averaging():
        return ADAM(0.1, use_ema=True, ema_momentum=0.5)

    swap = keras.callbacks.SwapEMAWeights()
    optimizer = DecoupledOptimizer(
        {"generator": SGD(0.1, momentum=0.9), "discriminator": averaging()}
    )
    found, weights = losses(optimizer, [swap])
    by_sgd, by_sgd_weights = losses(SGD(0.1, momentum=0.9), [])
    by_adam, by_adam_weights = losses(averaging(), [swap])
    raw, _ = losses(averaging(), [])
    np.testing.assert_allclose(found["val_first"], by_sgd["val_first"], rtol=1e-5)
    np.testing.assert_allclose(found["val_second"], by_adam["val_second"], rtol=1e-5)
    assert np.abs(np.subtract(raw["val_second"], by_adam["val_second"])).min() > 1e-3
    np.testing.assert_allclose(weights[GENERATOR], by_sgd_weights[GENERATOR], rtol=1e-5)
    np.testing.assert_allclose(
        weights[DISCRIMINATOR], by_adam_weights[DISCRIMINATOR], rtol=1e-5
    )


def test_best_weights_have_the_moments_and_not_the_rates():
    model, best = _trained(_optimizer(), epochs=1), BestWeights()
    best.capture(model, 1.0, 0)
    moments = [np.array(v) for v in model.optimizer.by_part["generator"].variables]
    weights = weights_of(model)
    set_learning_rate(model, 0.05)
    model.fit(data(), verbose=0, shuffle=False)
    best.restore(model)
    np.testing.assert_array_equal(weights_of(model), weights)
    now = model.optimizer.by_part["generator"].variables
    assert get_learning_rates(model)["generator"] == pytest.approx(0.05)
    for variable, moment in zip(now, moments, strict=True):
        if "momentum" in variable.path:
            np.testing.assert_array_equal(variable, moment)


def test_a_part_without_gradients_rests():
    model = TwoParts(late=True)
    model.compile(_optimizer())
    model.fit(data(), verbose=0, shuffle=False)
    counts = {
        name: int(optimizer.iterations.numpy())
        for name, optimizer in model.optimizer.by_part.items()
    }
    assert counts == {"generator": 4, "discriminator": 0}
    assert int(model.optimizer.iterations.numpy()) == 4


def test_any_keras_model_may_say_which_variables_are_whose():
    model = keras.Sequential([keras.layers.Dense(2), keras.layers.Dense(1)])
    model.build((None, FEATURES))
    first, last = (layer.trainable_variables for layer in model.layers)
    optimizer = DecoupledOptimizer({"first": SGD(0.0), "last": SGD(0.1)})
    optimizer.route({"first": first, "last": last})
    model.compile(optimizer, loss="mse")
    before = [np.array(v) for v in (*first, *last)]
    model.fit(*batch(), verbose=0)
    changed = [
        not np.array_equal(v, old)
        for v, old in zip((*first, *last), before, strict=True)
    ]
    assert changed == [False, False, True, True]


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="a dictionary of optimisers"):
        DecoupledOptimizer({})
    with pytest.raises(ValueError, match=r"of `a` must be a plain .* found LossScale"):
        DecoupledOptimizer({"a": keras.optimizers.LossScaleOptimizer(SGD())})
    shared = SGD()
    with pytest.raises(ValueError, match="an optimiser of its own"):
        DecoupledOptimizer({"a": shared, "b": shared})
    for clips in ({"a": 0.0}, {"b": 1.0}):
        with pytest.raises(ValueError, match=r"must be positive and of parts \['a'\]"):
            DecoupledOptimizer({"a": SGD()}, clips)
    with pytest.raises(ValueError, match=r"the model has the parts \['discriminator'"):
        _first_step(DecoupledOptimizer({"generator": SGD()}))

    class Incomplete(TwoParts):
        @property
        def parts(self):
            return {"generator": [self.generator], "discriminator": []}

    model = Incomplete()
    with pytest.raises(ValueError, match=r"belongs to none of the parts"):
        model.compile(_optimizer())
        model.fit(*batch(), verbose=0)
    plain = keras.Sequential([keras.Input([FEATURES]), keras.layers.Dense(1)])
    plain.compile(DecoupledOptimizer({"a": SGD()}), loss="mse")
    with pytest.raises(ValueError, match="nobody has said which variables"):
        plain.fit(*batch(), verbose=0)
