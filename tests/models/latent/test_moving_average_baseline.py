"""REINFORCE with the objective of the batches before as its baseline."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.models import MonteCarloVAE
from tests.models.latent.vae_fixtures import X, symbol_model

# A few steps each: tracing graphs would take longer.
pytestmark = pytest.mark.eager

_WEIGHTS = np.array([1.0, 2.0, 0.0, 1.0], np.float32)


def _model(baseline: str | None) -> MonteCarloVAE:
    return symbol_model("reinforce", baseline=baseline)


def _data(times: int) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensors((X, None, _WEIGHTS)).repeat(times)


def test_it_is_the_mean_of_earlier_batches():
    model = _model("moving_average")
    model.compile(keras.optimizers.SGD(0.0))
    assert model.current_baseline() == 0
    objectives = []
    for number in range(4):
        seen = model.fit(_data(1), verbose=0).history["objective"][0]
        objectives.append(-seen)
        weights = 0.9 ** np.arange(number, -1, -1)
        expected = np.average(objectives, weights=weights)
        assert float(model.current_baseline()) == pytest.approx(expected, rel=1e-5)
    assert np.ptp(objectives) > 0


def test_what_is_subtracted_from_the_gradient():
    def moved(model):
        model.compile(keras.optimizers.SGD(1.0))
        before = [v.numpy() for v in model.trainable_variables]
        model.fit(_data(1), verbose=0)
        return [
            b - v.numpy()
            for b, v in zip(before, model.trainable_variables, strict=True)
        ]

    model, plain = _model("moving_average"), _model(None)
    model.moving_average.sums.assign([-6.0, 2.0])
    drawing = _model(None)
    with tf.GradientTape() as tape:
        parameters = drawing(X)
        z = tf.stop_gradient(drawing.draw(parameters, 3))
        scores = drawing.latents.posterior(parameters).log_prob(z)
        mean = tf.reduce_sum(scores * _WEIGHTS / _WEIGHTS.sum())
    expected = tape.gradient(mean, drawing.trainable_variables)
    for found, without, each in zip(moved(model), moved(plain), expected, strict=True):
        each = 0.0 if each is None else -3.0 * tf.convert_to_tensor(each)
        np.testing.assert_allclose(found - without, each, atol=1e-5)


def test_files_keep_it(tmp_path):
    model = _model("moving_average")
    model.compile(keras.optimizers.SGD(0.1))
    model.fit(_data(3), verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.baseline == "moving_average"
    assert loaded.current_baseline() == model.current_baseline() < -1.0


@pytest.mark.parametrize(
    ("estimator", "baseline", "known"),
    [
        ("reinforce", "swap_in", "None or 'moving_average'"),
        ("vimco", "moving_average", "None or 'swap_in' or 'leave_one_out'"),
        ("dreg", "leave_one_out", "None"),
    ],
)
def test_baselines_of_other_estimators_are_refused(estimator, baseline, known):
    message = f"`baseline` of '{estimator}' must be {known}, found '{baseline}'"
    with pytest.raises(ValueError, match=message):
        symbol_model(estimator, baseline=baseline)
