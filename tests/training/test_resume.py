"""Runs that are interrupted inside this process; `test_kill.py` really kills."""

from __future__ import annotations

import json
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.training import (
    DivergenceGuard,
    ExactResume,
    LearningRateHalving,
    ResumableBatches,
)
from tests.training.toy import (
    STEPS,
    InterruptAt,
    Interruption,
    ToyModel,
    assert_same,
    interrupt,
    toy_batches,
    train,
)


def interrupted(folder, *moments, make=dict, **options):
    """Runs `train` until it completes, interrupting it after each of `moments`."""
    for steps in moments:
        with pytest.raises(Interruption):
            train(folder, extra=(InterruptAt(steps, interrupt),), **make(), **options)
    return train(folder, **make(), **options)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return train(tmp_path_factory.mktemp("uninterrupted"))


def test_uninterrupted_run_exercises_what_must_be_restored(expected):
    rates = [
        row["learning_rate"]
        for row in map(json.loads, expected["log"].split("\n")[:-1])
    ]
    assert len(set(rates)) > 1
    slots = [v for n, v in expected["arrays"].items() if n.startswith("optimizer/")]
    assert sum(np.any(v != 0) for v in slots) > len(expected["model"].trainable_weights)
    assert any("seed" in name for name in expected["arrays"])
    assert any("carried" in name for name in expected["arrays"])


@pytest.mark.parametrize(
    ("moments", "options", "first"),
    [
        # Before the first checkpoint; again and again; at an epoch's last step.
        ((1,), {"every_steps": 2}, (0, 0)),
        ((STEPS + 1, 3, 4), {"every_steps": 2}, (1, 4)),
        ((2 * STEPS,), {"every_steps": 1}, (1, STEPS - 1)),
        # At whatever time.
        ((3,), {"every_seconds": 1e-9}, (0, 2)),
    ],
)
def test_resumes_within_an_epoch(expected, tmp_path, moments, options, first):
    result = interrupted(tmp_path, *moments, **options)
    assert result["first"] == first
    assert_same(result, expected)


def test_resumes_from_the_end_of_an_epoch(expected, tmp_path):
    result = interrupted(tmp_path, STEPS + 4)
    assert result["first"] == (1, 0)
    assert_same(result, expected)


@pytest.mark.parametrize("moment", [4, STEPS])
def test_an_interrupt_leaves_a_checkpoint(expected, tmp_path, monkeypatch, moment):
    class Interrupting(ExactResume):
        left = moment

        def on_train_batch_begin(self, batch, logs=None):
            super().on_train_batch_begin(batch, logs)
            self.left -= 1
            if self.left == 0:
                self.interrupt()

    with monkeypatch.context() as patched:
        patched.setattr("tests.training.toy.ExactResume", Interrupting)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path)
    result = train(tmp_path)
    assert result["first"] == divmod(moment, STEPS)
    assert_same(result, expected)


def _made_by_older_code(folder):
    """Takes away what checkpoints have had only since format 1."""
    for path in (folder / "checkpoints").glob("*/manifest.json"):
        manifest = json.loads(path.read_text())
        assert manifest.pop("format") == 1
        path.write_text(json.dumps(manifest))


def test_a_run_of_older_code_goes_on_to_the_same_bits(expected, tmp_path):
    with pytest.raises(Interruption):
        train(tmp_path, extra=(InterruptAt(STEPS + 3, interrupt),), every_steps=1)
    _made_by_older_code(tmp_path)
    result = train(tmp_path)
    assert result["first"] == (1, 2)
    assert_same(result, expected)


def test_an_older_checkpoint_that_does_not_fit_is_refused_by_its_format(tmp_path):
    train(tmp_path, epochs=1)
    _made_by_older_code(tmp_path)
    older = r"checkpoint-00000001 \(of format 0, this version writes 1\)"
    with pytest.raises(ValueError, match=f"{older} does not fit this model"):
        train(tmp_path, epochs=2, optimizer=keras.optimizers.SGD(0.5))

    class MetricsLog(keras.callbacks.Callback):
        def set_state(self, state):
            self.rows = state["lines"]

    others = [MetricsLog(), LearningRateHalving()]
    with pytest.raises(ValueError, match=f"{older} holds another state of MetricsLog"):
        train(tmp_path, epochs=2, callbacks=others)


def test_averaged_weights_are_put_in_place_again(tmp_path):
    """Keras does it after the last epoch; a run that has none left must, too."""

    def optimizer():
        return keras.optimizers.SGD(0.5, use_ema=True, ema_momentum=0.8)

    first = train(tmp_path, epochs=2, optimizer=optimizer())
    again = train(tmp_path, epochs=2, optimizer=optimizer())
    assert again["first"] is None
    for name, array in first["arrays"].items():
        np.testing.assert_array_equal(again["arrays"][name], array, err_msg=name)


def test_a_completed_run_is_not_trained_further(expected, tmp_path):
    train(tmp_path)
    iterations = []

    class Count(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            iterations.append(batch)

    assert_same(train(tmp_path, extra=(Count(),)), expected)
    assert not iterations


def test_more_epochs_continue_a_completed_run(expected, tmp_path):
    train(tmp_path, epochs=2)
    assert_same(train(tmp_path, epochs=4), expected)


def test_epochs_that_are_short_have_no_checkpoint_each(expected, tmp_path):
    # None was written: it starts anew. The last epoch's is there all the same.
    result = interrupted(tmp_path, STEPS + 4, after_epochs=False)
    assert result["first"] == (0, 0)
    assert_same(result, expected)
    assert_same(train(tmp_path, after_epochs=False), expected)
    # Where the one before is old there is one.
    often = {"after_epochs": False, "every_seconds": 1e-9}
    result = interrupted(tmp_path / "often", STEPS + 1, **often)
    assert result["first"] == (1, 0)
    assert_same(result, expected)


def test_a_stopped_run_stays_stopped(tmp_path):
    def callbacks():
        return {"callbacks": [LearningRateHalving(min_gain=9.0, max_decays=0)]}

    first = train(tmp_path, **callbacks())
    # The first epoch gains from infinity; the second cannot gain 9 nats.
    assert first["epochs"] == [0, 1]
    assert_same(train(tmp_path, **callbacks()), first)


def test_resume_false_starts_anew(expected, tmp_path):
    train(tmp_path, epochs=2)
    assert_same(train(tmp_path, resume=False), expected)


def test_steps_per_execution(tmp_path):
    options = {"steps_per_execution": 4, "every_steps": 1}
    one = train(tmp_path / "one", **options)
    # Executions of 4 and 2 steps.
    assert_same(interrupted(tmp_path / "other", 3, **options), one)


def test_mixed_precision_with_loss_scaling(tmp_path):
    keras.config.set_dtype_policy("mixed_float16")
    try:

        def make():
            return {"optimizer": keras.optimizers.Adam(0.01)}

        one = train(tmp_path / "one", **make())
        names = set(one["arrays"])
        assert any("dynamic_scale" in name for name in names)
        other = interrupted(tmp_path / "other", STEPS + 3, make=make, every_steps=1)
        assert_same(other, one)
    finally:
        keras.config.set_dtype_policy("float32")


def test_plain_keras_model_and_early_stopping(tmp_path):
    # Sequential without an input shape: weights, slots and metrics come with step 1.
    x = np.random.default_rng(0).normal(size=(STEPS, 4, 3)).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((x, x[..., :1]))

    def make():
        model = keras.Sequential(
            [
                keras.layers.Dense(4, kernel_initializer=keras.initializers.Zeros()),
                keras.layers.Dropout(0.3, seed=1),
                keras.layers.Dense(1, kernel_initializer=keras.initializers.Ones()),
            ]
        )
        model.compile("adam", "mse", metrics=["mae"])
        stopping = keras.callbacks.EarlyStopping("loss", patience=1, min_delta=0.1)
        batches = ResumableBatches(data)
        resume = ExactResume(tmp_path / "run", batches, [stopping], every_steps=1)
        return model, batches, resume

    def fit(model, batches, resume, extra=()):
        return model.fit(
            batches.dataset,
            epochs=9,
            verbose=0,
            shuffle=False,
            callbacks=[*extra, resume],
        )

    model, batches, resume = make()
    expected = fit(model, batches, resume)
    assert len(expected.epoch) < 9
    resume.store.clear()
    for steps in (2, STEPS + 1):
        with pytest.raises(Interruption):
            fit(*make(), extra=(InterruptAt(steps, interrupt),))
    resumed_model, batches, resume = make()
    resumed = fit(resumed_model, batches, resume)
    assert resumed.history == expected.history
    for a, b in zip(resumed_model.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_damaged_checkpoints_fall_back(expected, tmp_path, caplog):
    with pytest.raises(Interruption):
        train(tmp_path, extra=(InterruptAt(9, interrupt),), every_steps=1)
    newest = max((tmp_path / "checkpoints").iterdir()) / "arrays.npz"
    newest.write_bytes(newest.read_bytes()[:-100])
    assert_same(train(tmp_path), expected)
    assert "is damaged and not used: arrays.npz should have" in caplog.text


def test_no_warning_about_missing_data_in_a_resumed_epoch(tmp_path):
    with pytest.raises(Interruption):
        train(tmp_path, extra=(InterruptAt(3, interrupt),), every_steps=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        train(tmp_path)
        filters = list(warnings.filters)
    assert not any("ran out" in str(f[1]) for f in filters)


def test_inner_callbacks_see_true_steps(tmp_path):
    seen = []

    class Watch(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            seen.append(("begin", batch))

        def on_train_batch_end(self, batch, logs=None):
            seen.append(("end", batch))

    with pytest.raises(Interruption):
        train(
            tmp_path,
            extra=(InterruptAt(4, interrupt),),
            callbacks=[Watch()],
            every_steps=1,
        )
    seen.clear()
    train(tmp_path, callbacks=[Watch()], epochs=1)
    assert seen == [(w, s) for s in range(3, STEPS) for w in ("begin", "end")]


def test_no_checkpoint_of_broken_weights(tmp_path):
    class Break(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                self.model.out.bias.assign(self.model.out.bias * np.nan)

    with pytest.raises(ArithmeticError, match=r"epoch 2, at step 2: .*nll = nan"):
        train(
            tmp_path,
            every_steps=1,
            callbacks=[Break(), DivergenceGuard(every_steps=2)],
        )
    resume = ExactResume(tmp_path / "checkpoints", ResumableBatches(toy_batches(0)))
    assert resume.store.load_latest().state["epoch"] == 1
    assert resume.store.load_latest().state["step"] == 0


def test_errors_name_what_differs(tmp_path):
    train(tmp_path, epochs=1)
    with pytest.raises(ValueError, match=r"callback_names are \['MetricsLog"):
        train(tmp_path, callbacks=[])
    with pytest.raises(ValueError, match=r"steps are 6, here they are 3"):
        train(tmp_path, batches=ResumableBatches(toy_batches(0, 3)))
    with pytest.raises(ValueError, match=r"does not fit this model: only the check"):
        train(tmp_path, epochs=2, optimizer=keras.optimizers.SGD(0.5))
    with pytest.raises(ValueError, match=r"`every_steps` must be positive"):
        ExactResume(tmp_path, ResumableBatches(toy_batches(0)), every_steps=0)
    with pytest.raises(ValueError, match=r"`fit\(\)` was given 2 steps"):
        batches = ResumableBatches(toy_batches(0))
        model = ToyModel()
        model.compile("sgd")
        resume = ExactResume(tmp_path / "other", batches)
        model.fit(toy_batches(0, 2), verbose=0, shuffle=False, callbacks=[resume])


def test_callbacks_with_arrays_in_their_state(tmp_path):
    class Sum(keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.total = np.zeros(2)

        def on_train_batch_end(self, batch, logs=None):
            self.total = self.total + np.array([1.0, logs["loss"]])

        def get_state(self):
            return {"nested": [{"total": self.total}]}

        def set_state(self, state):
            self.total = state["nested"][0]["total"]

    def make():
        return {"callbacks": [Sum()]}

    one = train(tmp_path / "one", **make())
    other = interrupted(tmp_path / "other", 8, make=make, every_steps=5)
    total = one["callbacks"][0].total
    assert total[0] == 4 * STEPS
    np.testing.assert_array_equal(other["callbacks"][0].total, total)


@pytest.mark.parametrize("moment", [STEPS + 3, STEPS])
@pytest.mark.landing
def test_what_callbacks_do_when_an_epoch_begins_is_done_once(tmp_path, moment):
    class Decay(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            rate = self.model.optimizer.learning_rate
            rate.assign(rate * 0.5)

    def make():
        return {"callbacks": [Decay()]}

    one = train(tmp_path / "one", **make())
    other = interrupted(tmp_path / "other", moment, make=make, every_steps=1)
    assert_same(other, one)
    assert float(one["model"].optimizer.learning_rate.value) == 0.5**5
