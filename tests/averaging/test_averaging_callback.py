"""Weight averages in fit(): counted right, evaluated aside, resumed exactly."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import averaging
from rlm_tf.layers import LSTMCell
from rlm_tf.models import RegularizedLanguageModel
from rlm_tf.optimizers import RectifiedAdam
from rlm_tf.training import MetricsLog, ResumableBatches
from rlm_tf.training.state_variables import read, state_variables
from tests.training.toy import (
    STEPS,
    VOCABULARY,
    InterruptAt,
    Interruption,
    assert_same,
    interrupt,
    noise,
    toy_batches,
    train,
)

VALID = toy_batches(1, 2)


def make(**kwargs):
    return RegularizedLanguageModel(
        VOCABULARY,
        LSTMCell(4, state_dropout=0.2),
        input_dropout=0.2,
        output_dropout=0.3,
        jit_loop=False,
        seed=3,
        **kwargs,
    )


def fit(model, *callbacks, epochs=3, optimizer=None, **kwargs):
    model.compile(optimizer or keras.optimizers.Adam(0.05, beta_1=0.0), **kwargs)
    data = toy_batches(0)
    return model.fit(
        data, epochs=epochs, shuffle=False, verbose=0, callbacks=[*callbacks]
    ).history


class Iterates(keras.callbacks.Callback):
    """Keeps the weights after every step, in the way that costs time."""

    def __init__(self):
        super().__init__()
        self.kept = []

    def on_train_batch_end(self, batch, logs=None):
        values = self.model.trainable_variables
        self.kept.append([np.array(v.value.numpy()) for v in values])


# === What is averaged ===


@pytest.mark.parametrize("on_device", [True, False])
def test_every_iterate_counts_once(on_device):
    model = make()
    start = [v.numpy() for v in model.trainable_variables]
    iterates = Iterates()
    callbacks = [
        averaging.WeightAveraging(average, VALID, on_device=on_device, name=name)
        for name, average in {
            "tail": averaging.TailAverage(5),
            "polyak": averaging.PolyakAverage(),
            "ema": averaging.ExponentialAverage(0.9),
        }.items()
    ]
    history = fit(model, *callbacks, iterates)
    assert len(iterates.kept) == 3 * STEPS
    expected = {"tail": iterates.kept[4:], "polyak": [start, *iterates.kept]}
    for callback in callbacks[:2]:
        with callback.averaged(model) as length:
            assert length == len(expected[callback.name])
            for i, v in enumerate(model.trainable_variables):
                mean = np.mean([kept[i] for kept in expected[callback.name]], axis=0)
                np.testing.assert_allclose(v.numpy(), mean, rtol=1e-5, atol=1e-7)
        for v, last in zip(model.trainable_variables, iterates.kept[-1], strict=True):
            np.testing.assert_array_equal(v.numpy(), last)
        assert history[f"{callback.name}_length"][-1] == length
    with callbacks[2].averaged(model):
        average = start[0]
        for kept in iterates.kept:
            average = 0.9 * average + 0.1 * kept[0]
        found = model.trainable_variables[0].numpy()
        np.testing.assert_allclose(found, average, rtol=1e-4)


def test_two_tailed_averages_are_those_of_the_iterates():
    model, iterates = make(), Iterates()
    callback = averaging.TwoTailedAveraging(VALID, every_steps=4, monitor="nll")
    fit(model, callback, iterates, epochs=5)
    plain = averaging.TwoTailedAverage()

    def loss_fn(weights):
        for v, w in zip(model.trainable_variables, weights, strict=True):
            v.assign(w)
        return model.evaluate(VALID, verbose=0, return_dict=True)["nll"]

    rows = []
    for t, weights in enumerate(iterates.kept, start=1):
        plain.update(weights)
        if t % 4 == 0:
            result = plain.evaluate(loss_fn, weights)
            rows.append((t, result.loss, result.length, plain.event))
    found = [
        (r["step"], r["loss"], r["length"], r["event"]) for r in callback.evaluations
    ]
    assert [row[::2] for row in found] == [row[::2] for row in rows]
    assert [row[3] for row in found] == [row[3] for row in rows]
    np.testing.assert_allclose([r[1] for r in found], [r[1] for r in rows], rtol=1e-5)
    assert max(row[2] for row in rows) > 4


# === Training is left alone ===


def test_training_goes_on_with_the_same_bits():
    alone, watched = make(), make()
    expected = fit(alone)
    callback = averaging.TwoTailedAveraging(VALID, every_steps=4, monitor="nll")
    history = fit(watched, callback)
    for name, values in expected.items():
        assert history[name] == values, name
    arrays = read(state_variables(alone))
    for name, array in read(state_variables(watched)).items():
        # Metrics of the epoch are put back; the memory of evaluations is their own.
        if "evaluation_state" not in name:
            np.testing.assert_array_equal(array, arrays[name], err_msg=name)


def test_errors_put_the_weights_back():
    model = make()
    calls = []

    def loss(model):
        calls.append([v.numpy() for v in model.trainable_variables])
        if len(calls) == 3:
            raise RuntimeError("the evaluation fails")
        return 1.0 / len(calls)

    iterates = Iterates()
    callback = averaging.TwoTailedAveraging(loss)
    with pytest.raises(RuntimeError, match="the evaluation fails"):
        fit(model, callback, iterates)
    for v, last in zip(model.trainable_variables, iterates.kept[-1], strict=True):
        np.testing.assert_array_equal(v.numpy(), last)
    with pytest.raises(KeyError), callback.averaged(model):
        raise KeyError("in the block")
    for v, last in zip(model.trainable_variables, iterates.kept[-1], strict=True):
        np.testing.assert_array_equal(v.numpy(), last)


def test_best_weights_have_the_best_loss():
    model = make()
    callback = averaging.TwoTailedAveraging(VALID, monitor="nll")
    fit(model, callback, epochs=6)
    best = min(row["loss"] for row in callback.evaluations)
    with callback.best(model) as loss:
        found = model.evaluate(VALID, verbose=0, return_dict=True)["nll"]
    assert loss == best
    np.testing.assert_allclose(found, best, rtol=1e-6)


def test_any_loss_may_decide():
    """Here the norm of the weights: the largest are the best."""
    model = make()

    def loss(model):
        return -float(sum(tf.reduce_sum(v.value**2) for v in model.trainable_variables))

    callback = averaging.TwoTailedAveraging(loss, every_steps=3)
    fit(model, callback)
    # Weights grow, so the last iterate always wins.
    assert {row["length"] for row in callback.evaluations} == {1}


def test_early_stopping_waits_for_the_averaged_loss():
    """As the docstring says: the lowest loss, whose name Keras does not know."""
    losses = iter([3.0, 2.0, 2.5, 2.5, 1.0])
    callback = averaging.WeightAveraging(
        averaging.PolyakAverage(), lambda model: next(losses)
    )
    stopping = keras.callbacks.EarlyStopping("averaged_loss", mode="min", patience=2)
    history = fit(make(), callback, stopping, epochs=9)
    assert history["averaged_loss"] == [3.0, 2.0, 2.5, 2.5]


# === Kills and replicas ===


def program(**kwargs):
    model = make(dropout_samples=2)
    callback = averaging.TwoTailedAveraging(VALID, monitor="nll", **kwargs)
    return {
        "model": model,
        "optimizer": RectifiedAdam(0.05, beta_1=0.0),
        "callbacks": [callback],
        "batches": ResumableBatches(toy_batches(0), transform=noise),
        "epochs": 3,
    }


@pytest.mark.landing
@pytest.mark.parametrize(
    ("options", "kills"), [({"every_steps": 4}, (5, 9)), ({"on_device": False}, (8,))]
)
def test_resumes_exactly(tmp_path, options, kills):
    def run(folder, **kwargs):
        made = program(**options)
        made["callbacks"].append(MetricsLog(folder / "metrics.jsonl"))
        return train(folder, **made, **kwargs)

    expected = run(tmp_path / "one")
    for steps in kills:
        with pytest.raises(Interruption):
            run(
                tmp_path / "other",
                extra=(InterruptAt(steps, interrupt),),
                every_steps=1,
            )
    result = run(tmp_path / "other")
    assert result["first"] is not None and result["first"] > (0, 0)
    assert_same(result, expected)
    one, other = (r["callbacks"][0] for r in (expected, result))
    assert one.evaluations == other.evaluations
    for a, b in zip(one.get_state()["best"], other.get_state()["best"], strict=True):
        np.testing.assert_array_equal(a, b)
    states = [c.average.get_state()["short"] for c in (one, other)]
    for a, b in zip(*(state["block"] for state in states), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.landing
def test_two_replicas_equal_one(two_replicas):
    results = []
    for strategy in (None, two_replicas):
        scope = strategy or tf.distribute.get_strategy()
        with scope.scope():
            model = make(dropout_samples=2, clip_norm=1.0)
            model.compile(RectifiedAdam(0.05, beta_1=0.0), jit_compile=False)
        callback = averaging.TwoTailedAveraging(VALID, monitor="nll", every_steps=3)
        model.fit(
            toy_batches(0), epochs=2, shuffle=False, verbose=0, callbacks=[callback]
        )
        with callback.averaged(model):
            weights = [v.numpy() for v in model.trainable_variables]
        results.append((callback.evaluations, weights))
    for a, b in zip(*(r[0] for r in results), strict=True):
        assert (a["length"], a["event"]) == (b["length"], b["event"])
        np.testing.assert_allclose(a["loss"], b["loss"], rtol=1e-4)
    for a, b in zip(*(r[1] for r in results), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


# === Mistakes ===


def test_mistakes_are_named():
    callback = averaging.TwoTailedAveraging(VALID)
    with pytest.raises(ValueError, match="steps_per_execution=1, found 2"):
        fit(make(), callback, steps_per_execution=2)
    with pytest.raises(ValueError, match="monitors `accuracy`, which is not among"):
        fit(make(), averaging.TwoTailedAveraging(VALID, monitor="accuracy"))
    with pytest.raises(ValueError, match="`average` must be a WeightAverage"):
        averaging.WeightAveraging(0.999, VALID)
    for average in (averaging.TwoTailedAverage(), averaging.TriggeredAverage(1)):
        with pytest.raises(ValueError, match="adapts to losses; `loss` must be"):
            averaging.WeightAveraging(average)
    with pytest.raises(ValueError, match="must be a data set or a function of the mod"):
        averaging.TwoTailedAveraging((np.zeros(3), np.zeros(3)))
    used = averaging.TailAverage(1)
    used.update([np.zeros(1)])
    with pytest.raises(ValueError, match="must be new, found one of 1 iterates"):
        averaging.WeightAveraging(used)
    with pytest.raises(ValueError, match="have `averaged_loss` already; give each"):
        fit(make(), *(averaging.TwoTailedAveraging(VALID) for _ in range(2)))
    with pytest.raises(ValueError, match="`every_steps` must be an integer >= 1"):
        averaging.TwoTailedAveraging(VALID, every_steps=0)
    with (
        pytest.raises(ValueError, match="there was no evaluation"),
        callback.best(make()),
    ):
        pass
