"""Rates that fall in a line, the best epoch's weights, sizes of Adam's steps."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from rlm_tf.layers import TransformerEncoder
from rlm_tf.models import Electra
from rlm_tf.optimizers import DecoupledOptimizer, LinearDecay
from rlm_tf.training import (
    AdamLog,
    DivergenceGuard,
    KeepBest,
    LinearRate,
    TrainingDivergedError,
)
from rlm_tf.training.callback_state import get_callback_state, set_callback_state

pytestmark = pytest.mark.eager


def linear(optimizer):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(optimizer, "mse")
    return model


def fit(model, callbacks, epochs=2, steps=5):
    data = np.ones((steps, 1), np.float32)
    return model.fit(
        data, data, 1, epochs, shuffle=False, verbose=0, callbacks=callbacks
    )


class Rates(keras.callbacks.Callback):
    """Remembers each step's rate; lowers it once if asked."""

    def __init__(self, halve_at=None):
        super().__init__()
        self.found = []
        self.halve_at = halve_at

    def on_train_batch_end(self, batch, logs=None):
        self.found.append(float(self.model.optimizer.learning_rate))
        if len(self.found) == self.halve_at:
            self.model.optimizer.learning_rate = self.found[-1] / 2


def test_rates_are_those_of_the_schedule():
    model, rates = linear(keras.optimizers.SGD(0.1)), Rates()
    fit(model, [LinearRate(10, 3), rates])
    expected = [float(LinearDecay(0.1, 10, 3)(step)) for step in range(10)]
    np.testing.assert_allclose(rates.found, expected, rtol=1e-6)


def test_a_rate_that_is_lowered_stays_lower():
    model, rates = linear(keras.optimizers.SGD(0.1)), Rates(halve_at=4)
    fit(model, [LinearRate(10, 3), rates])
    expected = np.array([float(LinearDecay(0.1, 10, 3)(step)) for step in range(10)])
    expected[4:] /= 2
    np.testing.assert_allclose(rates.found, expected, rtol=1e-6)


def test_a_rate_goes_on_where_it_was():
    rates = Rates()
    model, first, second = (
        linear(keras.optimizers.SGD(0.1)),
        *(LinearRate(10, 3) for _ in range(2)),
    )
    fit(model, [first, rates], epochs=1)
    set_callback_state(second, get_callback_state(first))
    fit(model, [second, rates], epochs=1)
    expected = [float(LinearDecay(0.1, 10, 3)(step)) for step in range(10)]
    np.testing.assert_allclose(rates.found, expected, rtol=1e-6)


def test_parts_keep_the_ratio_of_their_rates():
    data = np.random.default_rng(0).integers(5, 9, (8, 6)).astype(np.int32)
    model = electra("separate")
    parts = {"generator": 0.01, "discriminator": 0.03}
    model.compile(
        DecoupledOptimizer({k: keras.optimizers.Adam(v) for k, v in parts.items()})
    )
    model.fit(batch(data), batch_size=2, verbose=0, callbacks=[LinearRate(9, 2)])
    found = model.optimizer.learning_rates
    np.testing.assert_allclose(found["discriminator"], 3 * found["generator"], 1e-5)
    assert found["generator"] == pytest.approx(float(LinearDecay(0.01, 9, 2)(3)))


def test_a_schedule_is_refused():
    model = linear(keras.optimizers.SGD(LinearDecay(0.1, 10)))
    with pytest.raises(ValueError, match="LinearRate sets the learning rate"):
        fit(model, [LinearRate(10)])


@pytest.mark.parametrize(
    ("mode", "ties", "best"),
    [("min", "first", 1), ("min", "last", 3), ("max", "last", 0)],
)
def test_the_best_epoch_is_kept(mode, ties, best):
    class Values(keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.weights = []

        def on_epoch_end(self, epoch, logs=None):
            logs["value"] = [3.0, 1.0, 2.0, 1.0][epoch]
            self.weights.append(self.model.get_weights())

    model, values = linear(keras.optimizers.SGD(0.1)), Values()
    keep = KeepBest("value", mode, ties=ties)
    fit(model, [values, keep], epochs=4, steps=1)
    other = KeepBest("value", mode, ties=ties)
    set_callback_state(other, get_callback_state(keep))
    other.best.restore(model)
    assert other.best.epoch == best
    np.testing.assert_array_equal(model.get_weights()[0], values.weights[best][0])


def test_a_log_that_is_missing_is_named():
    with pytest.raises(ValueError, match="KeepBest watches `other`"):
        fit(linear("sgd"), [KeepBest("other")], epochs=1)
    with pytest.raises(ValueError, match="mode"):
        KeepBest("loss", "best")


# === Sizes of gradients and steps ===


def electra(embeddings):
    def encoder(seed):
        return TransformerEncoder(
            9, num_layers=1, width=4, num_heads=2, dropout=0.0, seed=seed
        )

    return Electra(encoder(1), encoder(2), embeddings=embeddings, seed=1)


def batch(tokens):
    positions = np.zeros_like(tokens)
    positions[:, 2] = 1
    return tokens, np.where(positions, 4, tokens), positions


@pytest.mark.parametrize("optimizer", ["adam", "decoupled"])
def test_sizes_of_the_first_step_are_known(optimizer):
    """Behind one step of Adam v^ is the gradient's square, and all change by a rate."""
    rates = {"generator": 0.01, "discriminator": 0.02}
    tokens = np.random.default_rng(0).integers(5, 9, (4, 6)).astype(np.int32)
    model = electra("separate")
    if optimizer == "adam":
        rates = dict.fromkeys(rates, 0.01)
        model.compile(keras.optimizers.Adam(0.01, epsilon=1e-12))
    else:
        model.compile(
            DecoupledOptimizer(
                {k: keras.optimizers.Adam(v, epsilon=1e-12) for k, v in rates.items()}
            )
        )
    before = [v.numpy() for v in model.trainable_variables]
    logs = model.fit(batch(tokens), batch_size=4, verbose=0, callbacks=[AdamLog()])
    names = {id(v): part for part, own in model.part_variables().items() for v in own}
    for part in rates:
        changes = [
            (variable.numpy() - old).ravel()
            for variable, old in zip(model.trainable_variables, before, strict=True)
            if names[id(variable)] == part
        ]
        expected = np.sqrt(np.mean(np.square(np.concatenate(changes))))
        assert logs.history[f"update_{part}"][0] == pytest.approx(expected, rel=0.02)
        assert logs.history[f"gradient_norm_{part}"][0] > 0


def test_what_is_shared_is_a_part_of_its_own():
    tokens = np.random.default_rng(0).integers(5, 9, (4, 6)).astype(np.int32)
    model = electra("shared")
    model.compile(keras.optimizers.Adam(0.01))
    logs = model.fit(batch(tokens), batch_size=4, verbose=0, callbacks=[AdamLog()])
    parts = {name.removeprefix("update_") for name in logs.history if "update" in name}
    assert parts == {"generator", "discriminator", "shared"}


def test_norms_of_a_model_without_parts_are_its_gradients():
    model = linear(keras.optimizers.Adam(0.01))
    kernel, bias = (v.numpy().item() for v in model.trainable_variables)
    logs = fit(model, [AdamLog()], epochs=1, steps=1)
    slope = 2 * (kernel + bias - 1)
    assert logs.history["gradient_norm"][0] == pytest.approx(
        abs(slope) * 2**0.5, rel=1e-4
    )


def test_another_optimiser_is_refused():
    with pytest.raises(ValueError, match="must be Adam or AdamW, found SGD"):
        fit(linear("sgd"), [AdamLog()], epochs=1)


# === A loss that is stuck ===


class Stuck(keras.callbacks.Callback):
    """Gives a log of its own."""

    def __init__(self, values):
        super().__init__()
        self.values = values

    def on_epoch_end(self, epoch, logs=None):
        logs["detector"] = self.values[epoch]


def test_a_loss_that_is_stuck_is_divergence():
    guard = DivergenceGuard(highest={"detector": 0.69})
    # The first epoch is let pass.
    fit(linear("sgd"), [Stuck([0.7, 0.6]), guard])
    with pytest.raises(TrainingDivergedError, match=r"detector \(not below 0.69\)"):
        fit(linear("sgd"), [Stuck([0.7, 0.693]), guard])


def test_a_slow_loss_is_not_stuck():
    guard = DivergenceGuard(highest={"detector": 0.69}, highest_epochs=3)
    fit(linear("sgd"), [Stuck([0.7, 0.7, 0.7, 0.6, 0.7, 0.7]), guard], epochs=6)
    state = guard.get_state()
    again = DivergenceGuard(highest={"detector": 0.69}, highest_epochs=3)
    again.set_state(state)
    # Three in a row, two of them before the run was killed.
    again.set_model(linear("sgd"))
    again.on_epoch_begin(6)
    with pytest.raises(TrainingDivergedError, match="epoch 7"):
        again.on_epoch_end(6, {"detector": 0.7})


def test_a_loss_that_is_stuck_falls_back():
    guard = DivergenceGuard(
        highest={"detector": 0.69}, recover=True, monitor="loss", factor=0.5
    )
    model = linear(keras.optimizers.SGD(0.08))
    fit(model, [Stuck([0.5, 0.7, 0.5]), guard], epochs=3)
    assert guard.recoveries == 1
    assert float(model.optimizer.learning_rate) == pytest.approx(0.04)
