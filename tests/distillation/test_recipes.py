"""Published weights: the numbers of Table B.1, both arms, networks with the layers."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from rlm_tf.distillation import recipe
from rlm_tf.distillation.recipes import RECIPES
from rlm_tf.models import Distillation
from rlm_tf.models.image import wide_resnet

_LABELS = np.arange(6) % 3
# Of Table B.1: coefficients of the method itself with either teacher.
_TABLE = {
    "fitnet": (1, 100, 50),
    "at": (3, 1000, 500),
    "sp": (1, 3000, 1500),
    "cc": (1, 0.02, 0.01),
    "vid": (3, 1, 0.5),
    "rkd": (1, 1, 0.5),
    "pkt": (1, 30000, 15000),
    "ft": (1, 200, 100),
    "nst": (3, 50, 25),
    "crd": (1, 0.8, 0.5),
}


@pytest.mark.parametrize("name", _TABLE)
def test_weights_are_those_of_the_table(name):
    number, *expected = _TABLE[name]
    for arm, weight in zip(("standard", "soteacher"), expected, strict=True):
        found = recipe(name, arm, labels=_LABELS)
        (kd, of_kd), *own = found.losses
        assert (type(kd).__name__, kd.temperature, of_kd) == ("KD", 4.0, 1.0)
        assert found.student_weight == 1.0
        assert [coefficient for _, coefficient in own] == [weight] * number
    if number == 3:
        places = [strategy.student_layer_name for strategy, _ in own]
        assert places == ["stage1", "stage2", "stage3"]


def test_others():
    found = recipe("kd")
    assert [w for _, w in found.losses] == [0.5] and found.student_weight == 0.5
    for arm, rotated in (("standard", 0.27), ("soteacher", 0.1)):
        _, (strategy, weight) = recipe("sskd", arm).losses
        assert (weight, strategy.rotated_weight) == (10.0, rotated)
    ((strategy, weight),) = recipe("dkd").losses
    assert (strategy.alpha, strategy.beta, weight) == (1.0, 6.0, 1.0)
    ((_, rises),) = recipe("dkd", warm_up=8).losses
    np.testing.assert_allclose([rises(s) for s in (0, 2, 8, 99)], [0, 0.25, 1, 1])
    for name, temperature in (("dist", 4.0), ("dist_unscaled", 1.0)):
        ((strategy, weight),) = recipe(name).losses
        assert (strategy.temperature, weight) == (temperature, 1.0)
    found = recipe("ab", stages=4)
    assert found.first_epochs == 30
    weights = [weight for _, weight in found.first_losses]
    np.testing.assert_allclose(weights, 3e-3 * np.array([1 / 8, 1 / 4, 1 / 2, 1]))
    assert len(found.losses) == 1
    with pytest.raises(ValueError, match="give `labels` of all training examples"):
        recipe("crd")
    with pytest.raises(ValueError, match="`name` must be"):
        recipe("fsp")
    with pytest.raises(ValueError, match="`arm` must be"):
        recipe("kd", "teacher")


@pytest.mark.parametrize("name", RECIPES)
def test_networks_have_the_layers(name):
    keras.utils.set_random_seed(0)
    teacher, student = (
        wide_resnet(10, widen, 3, input_shape=(8, 8, 1)) for widen in (2, 1)
    )
    found = recipe(name, labels=_LABELS, negatives=2)
    x = np.random.default_rng(0).normal(size=(6, 8, 8, 1)).astype("float32")
    losses = [*found.losses, *found.first_losses]
    model = Distillation(teacher, student, losses, student_weight=found.student_weight)
    needs_ids = any("ids" in strategy.needs for strategy, _ in losses)
    inputs = (x, np.arange(6)) if needs_ids else x
    terms = model.objective_terms(inputs, _LABELS, None, training=True)
    assert len(terms) == 1 + len(losses)
    assert all(np.isfinite(term.loss).all() for term in terms.values())
