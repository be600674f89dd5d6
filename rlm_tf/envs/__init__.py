"""Gymnasium environments, and their dynamics as pure functions.

Importing this package registers `rlm_tf/ToroidalGrid-v0`. Where it is not imported, the
name of the environment may say who registers it:

    env = gymnasium.make("rlm_tf.envs:rlm_tf/ToroidalGrid-v0")
"""

import gymnasium

from rlm_tf.envs.grid_dynamics import (
    ACTIONS,
    Trajectories,
    next_states,
    reward_landscape,
    rollout,
)
from rlm_tf.envs.grid_pomdp import GridPOMDP, grid_pomdp
from rlm_tf.envs.toroidal_grid import ToroidalGrid
from rlm_tf.envs.toroidal_grid_vector import ToroidalGridVector
from rlm_tf.envs.trajectories import (
    Draws,
    collect,
    collected_trajectories,
    trajectory_draws,
)

# Fifty steps are the published length of an epoch.
gymnasium.register(
    id="rlm_tf/ToroidalGrid-v0",
    entry_point="rlm_tf.envs.toroidal_grid:ToroidalGrid",
    vector_entry_point="rlm_tf.envs.toroidal_grid_vector:ToroidalGridVector",
    max_episode_steps=50,
)

__all__ = [
    "ACTIONS",
    "Draws",
    "GridPOMDP",
    "ToroidalGrid",
    "ToroidalGridVector",
    "Trajectories",
    "collect",
    "collected_trajectories",
    "grid_pomdp",
    "next_states",
    "reward_landscape",
    "rollout",
    "trajectory_draws",
]
