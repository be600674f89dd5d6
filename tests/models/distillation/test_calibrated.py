"""Calibrated teachers: the same features, logits over a temperature."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from rlm_tf.distillation import KD, FitNet
from rlm_tf.models import Distillation, calibrated_teacher

_X = np.random.default_rng(0).normal(size=(6, 3)).astype("float32")


def _classifier(seed):
    keras.utils.set_random_seed(seed)
    inputs = keras.Input([3])
    hidden = keras.layers.Dense(4, "relu", name="hidden")(inputs)
    return keras.Model(inputs, keras.layers.Dense(2)(hidden))


@pytest.mark.parametrize("is_sequential", [False, True])
def test_logits_are_divided_and_weights_shared(is_sequential):
    model = _classifier(1)
    model = keras.Sequential([model]) if is_sequential else model
    teacher = calibrated_teacher(model, 4.0)
    np.testing.assert_allclose(teacher(_X), model(_X) / 4, rtol=1e-6)
    model.weights[0].assign(2 * model.weights[0])
    np.testing.assert_allclose(teacher(_X), model(_X) / 4, rtol=1e-6)


def test_features_are_found_by_their_names():
    teacher = calibrated_teacher(_classifier(1), 2.0)
    losses = [KD(1.0), FitNet("hidden", "hidden")]
    model = Distillation(teacher, _classifier(2), losses)
    model.compile(keras.optimizers.SGD(0.1))
    logs = model.fit(_X, np.arange(6) % 2, verbose=0).history
    assert np.isfinite([logs["kd"], logs["fit_net"]]).all()


def test_mistakes():
    with pytest.raises(ValueError, match="`temperature` must"):
        calibrated_teacher(_classifier(1), 0.0)
