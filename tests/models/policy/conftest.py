"""Fixtures of a small toroidal grid."""

from __future__ import annotations

import pytest

from rlm_tf.envs import grid_pomdp
from rlm_tf.restricted import FastInformedBound, alpha_vector_policy
from tests.models.policy.grid_world import SIZE


@pytest.fixture(scope="module")
def pomdp():
    return grid_pomdp(SIZE)


@pytest.fixture(scope="module")
def target(pomdp):
    alphas = FastInformedBound(
        pomdp.transition, pomdp.observation, pomdp.reward, 0.9
    ).solve()
    return alpha_vector_policy(alphas, pomdp.beliefs, 0.3)
