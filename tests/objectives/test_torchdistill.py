"""Losses of distillation beside torchdistill's, where definitions agree."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives import distillation, feature_distillation, feature_relations

torch = pytest.importorskip("torch", reason="the optional extra `peers` is missing")
pytest.importorskip("torchdistill", reason="the optional extra `peers` is missing")

from experiments.benchmark.torch_losses import torch_losses  # noqa: E402

pytestmark = pytest.mark.peers
_T = 4.0
_OURS = {
    # torchdistill multiplies by T^2 only where labels have a part.
    "kd": lambda t, s: distillation.kd(t, s, temperature=_T).loss / _T**2,
    "standardised_kd": lambda t, s: (
        distillation.standardised_kd(t, s, temperature=_T).loss / _T**2
    ),
    "dist": lambda t, s: (
        distillation.dist(t, s, beta=1.0, gamma=2.0, temperature=_T).loss
    ),
    "relational": lambda t, s: feature_relations.relational(t, s).loss,
    "probabilistic": lambda t, s: feature_relations.probabilistic(t, s).loss,
    "attention": lambda t, s: feature_distillation.attention(t, s).loss,
    "activation_boundary": lambda t, s: (
        feature_distillation.activation_boundary(t, s).loss
    ),
}
_MAPS = ("attention", "activation_boundary")


@pytest.mark.parametrize("name", [*_OURS])
def test_values_and_gradients_agree(name):
    rng = np.random.default_rng(1)
    shape = (6, 4, 5, 3) if name in _MAPS else (6, 9)
    teacher, student = (2 * rng.normal(size=shape) for _ in range(2))
    with tf.GradientTape() as tape:
        own = tf.Variable(student)
        found = tf.reduce_mean(_OURS[name](tf.constant(teacher), own))
    gradient = tape.gradient(found, own)

    def channels_first(x):
        return torch.tensor(np.moveaxis(x, -1, 1) if name in _MAPS else x)

    theirs = channels_first(student).requires_grad_()
    expected = torch_losses(_T)[name](channels_first(teacher), theirs)
    (slope,) = torch.autograd.grad(expected, theirs)
    slope = slope.numpy()
    slope = np.moveaxis(slope, 1, -1) if name in _MAPS else slope
    # It adds 1e-7 to similarities under its logarithm, and to deviations.
    np.testing.assert_allclose(found, expected.detach(), rtol=1e-5)
    np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-7)
