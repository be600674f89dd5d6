"""Terms that are declared: losses, gradients, phases and frozen models follow."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.models import ObjectiveModel, TermLoss, TermSpec
from rlm_tf.optimizers import DecoupledOptimizer
from rlm_tf.training.state_variables import fixed_digest, state_variables
from tests.objective_model.declared_models import (
    TwoParts,
    batch,
    data,
    dense,
    weights_of,
)

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager

RATE = 0.1


def _step(model, steps=1, size=8):
    before = weights_of(model)
    x, y = batch(size)
    dataset = tf.data.Dataset.from_tensors((x, y))
    logs = model.fit(dataset, epochs=steps, verbose=0, shuffle=False).history
    return (before - weights_of(model)) / RATE, logs


def _made(**options):
    model = TwoParts(**options)
    model.compile(keras.optimizers.SGD(RATE))
    return model


def _gradient(layer, factor):
    """Of the mean of `(w . x + b - factor y)^2`, float64: kernel, then bias."""
    x, y = (values.astype(np.float64) for values in batch())
    kernel, bias = (np.asarray(value, np.float64) for value in layer.get_weights())
    error = x @ kernel[:, 0] + bias - factor * y
    return np.append(2 * x.T @ error / len(x), 2 * error.mean())


def test_losses_and_gradients_are_those_of_the_declared_terms():
    model = _made()
    expected = np.concatenate(
        [_gradient(model.generator, 1), 0.5 * _gradient(model.discriminator, 2)]
    )
    moved, logs = _step(model)
    np.testing.assert_allclose(moved, expected, rtol=1e-4, atol=1e-5)
    assert set(logs) == {"first", "second", "loss"}
    total = logs["first"][0] + 0.5 * logs["second"][0]
    np.testing.assert_allclose(logs["loss"], total, rtol=1e-6)
    assert not model.differentiates_apart


def test_a_coefficient_follows_the_step_and_its_switch():
    switch = tf.Variable(1.0)
    specs = [
        TermSpec("first", lambda step: tf.cast(step + 1, tf.float32), switch=switch),
        TermSpec(
            "second", keras.optimizers.schedules.PiecewiseConstantDecay([0], [2.0, 3.0])
        ),
    ]
    model = _made(specs=specs)
    for step, (first, second) in enumerate([(1.0, 2.0), (2.0, 3.0), (0.0, 3.0)]):
        switch.assign(float(step < 2))
        expected = np.concatenate(
            [
                first * _gradient(model.generator, 1),
                second * _gradient(model.discriminator, 2),
            ]
        )
        moved, _ = _step(model)
        np.testing.assert_allclose(moved, expected, rtol=1e-3, atol=1e-4)
    # Evaluation has the coefficients of step 0, and no switch.
    logs = model.evaluate(data(1), verbose=0, return_dict=True)
    np.testing.assert_allclose(
        logs["loss"], logs["first"] + 2.0 * logs["second"], rtol=1e-6
    )


def test_terms_weigh_their_gradient_by_parts():
    """And each is clipped before; a part that is not named has the factor 1."""

    class Both(TwoParts):
        def objective_terms(self, x, y, sample_weight, training):
            error = tf.reduce_sum(self(x), axis=1) - y
            return {"first": TermLoss(error**2), "second": TermLoss(error**2)}

    def gradient(specs):
        model = Both(specs=specs)
        model.compile(keras.optimizers.SGD(RATE))
        assert model.differentiates_apart == any(s.part_factors for s in specs)
        return np.split(_step(model)[0], 2)

    plain = gradient([TermSpec("first"), TermSpec("second", 0.0)])
    norm = np.linalg.norm(np.concatenate(plain))
    weighed = gradient(
        [
            TermSpec("first", part_factors={"generator": tf.constant(3.0)}),
            TermSpec("second", clip_norm=norm / 2, part_factors={"discriminator": 0.0}),
        ]
    )
    np.testing.assert_allclose(weighed[0], 3.5 * plain[0], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(weighed[1], plain[1], rtol=1e-3, atol=1e-4)


@pytest.mark.graph
def test_a_phase_that_begins_traces_once_and_terms_that_are_off_are_not_run():
    model = _made(late=True)
    fixed = weights_of(model)[4:]
    _, logs = _step(model, steps=3)
    assert "second" not in model.seen and set(logs) == {"first", "loss"}
    np.testing.assert_array_equal(weights_of(model)[4:], fixed)
    model.evaluate(data(1), verbose=0)
    model.set_phase(1)
    _step(model, steps=3)
    assert model.seen == ["second"]
    assert np.all(weights_of(model)[4:] != fixed)
    logs = model.evaluate(data(1), verbose=0, return_dict=True)
    assert logs["second"] > 0 and model.seen == ["second"] * 2


_WARNING = "Gradients do not exist for variables"


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("decoupled", [False, True])
def test_parts_may_rest_in_a_phase_without_a_warning(scaled, decoupled, recwarn):
    optimizer = keras.optimizers.SGD(RATE)
    if decoupled:
        optimizer = DecoupledOptimizer(
            {"generator": optimizer, "discriminator": keras.optimizers.Adam(RATE)}
        )
    if scaled:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, 1024.0)
    specs = [TermSpec("first", phases=(0, 2)), TermSpec("second", phases=(1, 2))]
    model = TwoParts(specs=specs)
    model.compile(optimizer)
    for phase, moves in enumerate([(True, False), (False, True), (True, True)]):
        model.set_phase(phase)
        moved = np.abs(_step(model, steps=2)[0])
        assert (moved[:4].max() > 0, moved[4:].max() > 0) == moves
    assert not [w for w in recwarn if _WARNING in str(w.message)]


def test_weights_that_no_term_reaches_are_warned_of():
    """When every term has had its phase; before, one of them may reach it."""
    specs = [TermSpec("first", phases=(0,)), TermSpec("second", phases=(1,))]
    model = TwoParts(specs=specs)
    model.idle = dense(3, name="idle")
    model.compile(keras.optimizers.SGD(RATE))
    _step(model)
    for phase in (1, 0):
        model.set_phase(phase)
        with pytest.warns(UserWarning, match=_WARNING) as warned:
            _step(model)
        (text,) = {str(w.message) for w in warned if _WARNING in str(w.message)}
        assert "idle/kernel" in text and "dense" not in text


def test_a_step_without_any_gradient_is_refused():
    model = TwoParts(specs=[TermSpec("first"), TermSpec("second", phases=(1,))])
    model.generator.trainable = False
    model.compile(keras.optimizers.SGD(RATE))
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        _step(model)


def test_a_phase_is_in_checkpoints_and_not_in_files(tmp_path):
    model = _made(late=True)
    model.set_phase(1)
    assert state_variables(model)["phase"].numpy() == 1
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.late and int(loaded.phase.numpy()) == 0
    # Who writes the variable, as a restored checkpoint does, is followed.
    loaded.evaluate(data(1), verbose=0)
    loaded.phase.assign(1)
    _step(loaded)
    assert loaded.evaluate(data(1), verbose=0, return_dict=True)["second"] > 0


def test_frozen_models_are_never_trained_and_are_a_digest(tmp_path):
    model, teacher = _made(), dense(7)
    model.teacher.value = teacher
    model._complete()
    before = [np.array(w) for w in teacher.get_weights()]
    digest = fixed_digest(model)
    _step(model, steps=2)
    # Whether it is trainable elsewhere is its own affair.
    assert teacher.trainable
    for value, old in zip(teacher.get_weights(), before, strict=True):
        np.testing.assert_array_equal(value, old)
    assert fixed_digest(model) == digest
    names = state_variables(model)
    assert names and not any("teacher" in name for name in names)
    teacher.bias.assign([1.0])
    assert fixed_digest(model) != digest
    # Held in an `Untracked`, it is not in a file.
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.teacher.value is None and len(loaded.weights) == len(model.weights)


def test_mistakes_in_declarations_are_named():
    def terms(*names):
        class Wrong(TwoParts):
            def objective_terms(self, x, y, sample_weight, training):
                return {name: TermLoss(tf.square(y)) for name in names}

        model = Wrong()
        model.compile("sgd", run_eagerly=True)
        return model

    for names in (["first"], ["first", "second", "third"]):
        message = r"Wrong: `objective_terms` must return the terms of .* found \["
        with pytest.raises(ValueError, match=message):
            terms(*names).train_on_batch(*batch())
    specs = [TermSpec("first", part_factors={"decoder": 1.0}), TermSpec("second")]
    model = TwoParts(specs=specs)
    model.compile("sgd", run_eagerly=True)
    with pytest.raises(ValueError, match=r"names \['decoder'\], the parts are"):
        model.train_on_batch(*batch())

    class Own(TwoParts):
        def objective_terms(self, x, y, sample_weight, training):
            own = TermLoss(None, tf.ones(8), lambda variables, scale: (scale, []))
            return {"first": own, "second": own}

    model = Own()
    model.compile("sgd", run_eagerly=True)
    with pytest.raises(ValueError, match="must say `brings_gradient=True`"):
        model.train_on_batch(*batch())

    class Shared(TwoParts):
        @property
        def parts(self):
            return {"a": [self.generator], "b": [self.generator.kernel]}

    with pytest.raises(ValueError, match=r"disjoint, found .*kernel` in `a` and `b`"):
        Shared().part_variables()


def test_metrics_stand_in_the_order_of_the_terms():
    names = [metric.name for metric in TwoParts().metrics]
    assert names[:3] == ["loss", "first", "second"]
    assert isinstance(TwoParts(), ObjectiveModel)
