"""Training goes over to the next phase when a trigger says so."""

from __future__ import annotations

import math

import keras
import pytest

from rlm_tf.training import (
    AfterEpochs,
    AfterSteps,
    ExactResume,
    MetricBelow,
    NoGain,
    ResumableBatches,
    SwitchPhase,
)
from tests.objective_model.declared_models import TwoParts, data, weights_of
from tests.training.toy import InterruptAt, Interruption, interrupt


def _model():
    model = TwoParts(late=True)
    model.compile(keras.optimizers.Adam(0.01))
    return model


def _phases(trigger, logs):
    """Returns the phase after each epoch of the given logs."""
    callback, phases = SwitchPhase(trigger), []
    callback.set_model(_model())
    callback.on_train_begin()
    for epoch, value in enumerate(logs):
        callback.on_epoch_begin(epoch)
        callback.on_epoch_end(epoch, {"val_nll": value})
        phases.append(int(callback.model.phase.numpy()))
    return phases


def test_triggers():
    values = [3.0, 2.0, math.nan, 1.5, 1.6, 1.5]
    assert _phases(AfterEpochs(2), values) == [0, 0, 1, 1, 1, 1]
    assert _phases(AfterEpochs(0), values)[0] == 1
    assert _phases(MetricBelow("val_nll", 1.6), values) == [0, 0, 0, 1, 1, 1]
    assert _phases(NoGain("val_nll"), values) == [0, 0, 1, 1, 1, 1]
    assert _phases(NoGain("val_nll", 2), values) == [0, 0, 0, 0, 0, 1]
    assert _phases(NoGain("val_nll", min_gain=1.0), values) == [0, 1, 1, 1, 1, 1]
    at = lambda epoch, logs, model: epoch == 3 and model.late  # noqa: E731
    assert _phases(at, values) == [0, 0, 0, 1, 1, 1]


def test_after_steps_counts_those_of_the_optimiser():
    model = _model()
    model.fit(
        data(4),
        epochs=2,
        verbose=0,
        shuffle=False,
        callbacks=[SwitchPhase(AfterSteps(6))],
    )
    # The moments of the second term's layer know of the two steps that were left.
    assert model.seen == ["second"] and int(model.phase.numpy()) == 1
    again = _model()
    again.fit(data(4), verbose=0, shuffle=False)
    again.fit(data(4).take(2), verbose=0, shuffle=False)
    again.set_phase(1)
    again.fit(data(4).skip(2), verbose=0, shuffle=False)
    assert weights_of(model) == pytest.approx(weights_of(again), abs=0)


def test_switches_lead_through_several_phases():
    model = _model()
    callbacks = [SwitchPhase(AfterEpochs(1), to=1), SwitchPhase(AfterEpochs(2), to=4)]
    model.fit(data(2), epochs=2, verbose=0, callbacks=callbacks)
    assert int(model.phase.numpy()) == 1
    model.fit(data(2), epochs=3, initial_epoch=2, verbose=0, callbacks=callbacks)
    assert int(model.phase.numpy()) == 4
    assert [callback.switched_to for callback in callbacks] == [1, 4]


@pytest.mark.parametrize("moment", [3, 6, 11])
def test_a_run_resumes_exactly_on_either_side_of_a_switch(tmp_path, moment):
    def train(folder, *extra):
        model, batches = _model(), ResumableBatches(data(4))
        switch = SwitchPhase(NoGain("loss", 1, min_gain=10.0))
        resume = ExactResume(tmp_path / folder, batches, [switch], every_steps=1)
        model.fit(
            batches.dataset,
            epochs=3,
            verbose=0,
            shuffle=False,
            callbacks=[resume, *extra],
        )
        return model, switch

    expected, _ = train("one")
    assert int(expected.phase.numpy()) == 1
    with pytest.raises(Interruption):
        train("other", InterruptAt(moment, interrupt))
    found, switch = train("other")
    assert switch.switched_to == 1
    assert weights_of(found) == pytest.approx(weights_of(expected), abs=0)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="`trigger` must be a trigger or a function"):
        SwitchPhase(3)
    with pytest.raises(ValueError, match="SwitchPhase: `to`"):
        SwitchPhase(AfterEpochs(1), to=-1)
    with pytest.raises(ValueError, match="MetricBelow: `value` must be finite"):
        MetricBelow("loss", math.nan)
    with pytest.raises(ValueError, match="NoGain: `min_gain`"):
        NoGain("loss", min_gain=-1.0)
    callback = SwitchPhase(MetricBelow("val_nll", 1.0))
    callback.set_model(keras.Sequential([keras.layers.Dense(1)]))
    with pytest.raises(ValueError, match="Sequential has no phases"):
        callback.on_train_begin()
    callback.set_model(_model())
    with pytest.raises(ValueError, match="MetricBelow watches `val_nll`"):
        callback.on_epoch_end(0, {"loss": 1.0})
