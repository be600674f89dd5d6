"""A small toroidal grid, models of it and batches for them."""

from __future__ import annotations

import keras
import numpy as np

from rlm_tf.layers import DiscretePolicy
from rlm_tf.models import ReinforceIMM
from rlm_tf.restricted import Belief

SIZE, STATES, HIDDEN = 5, 25, 6
STEPS = 8


def small_model(pomdp, target, seed=3, **options) -> ReinforceIMM:
    policy = DiscretePolicy(STATES, 4, HIDDEN, seed=seed)
    return ReinforceIMM(policy, target, Belief.from_matrix(pomdp.beliefs), **options)


def small_batch(rng, rows=4):
    states = rng.integers(STATES, size=(rows, STEPS)).astype(np.int32)
    actions = rng.integers(4, size=(rows, STEPS)).astype(np.int32)
    rewards = rng.random((rows, STEPS)).astype(np.float32)
    return states, {"actions": actions, "rewards": rewards}


def adam() -> keras.optimizers.Optimizer:
    return keras.optimizers.Adam(0.01, epsilon=1e-8)
