"""The gymnasium environments."""

from __future__ import annotations

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import rlm_tf.envs
from rlm_tf.envs import ToroidalGrid, ToroidalGridVector, next_states, reward_landscape

ID = "rlm_tf/ToroidalGrid-v0"


@pytest.mark.parametrize("observation", ["full", "x"])
@pytest.mark.parametrize("render_mode", [None, "rgb_array", "ansi"])
@pytest.mark.filterwarnings("error")
def test_passes_the_checks_of_gymnasium(observation, render_mode):
    env = gymnasium.make(ID, observation=observation, render_mode=render_mode)
    check_env(env.unwrapped, skip_render_check=render_mode is None)


@pytest.mark.slow
@pytest.mark.landing
def test_a_name_with_the_package_needs_no_import():
    names = f"'rlm_tf.envs:{ID}'"
    program = f"""
import gymnasium, sys
assert gymnasium.make({names}, size=5).reset(seed=1)[0].shape == (2,)
assert gymnasium.make_vec({names}, num_envs=3).num_envs == 3
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_steps_are_those_of_the_dynamics(rng):
    env = gymnasium.make(ID, size=5, reward_shape="cone", reward_width=1.5)
    moves, rewards = next_states(5), reward_landscape(5, "cone", 1.5)
    (y, x), info = env.reset(options={"state": (4, 2)})
    state = 22
    assert (y, x) == (4, 2) and info == {"state": 22}
    for action in rng.integers(4, size=30):
        (y, x), reward, terminated, truncated, info = env.step(action)
        state = moves[state, action]
        assert (y, x) == divmod(state, 5) and info["state"] == state
        assert reward == rewards[state]
        assert not terminated and not truncated


def test_episodes_are_truncated_and_seeds_repeat():
    env = gymnasium.make(ID)
    assert env.spec.max_episode_steps == 50
    first = [env.reset(seed=3)[1]["state"], *[env.reset()[1]["state"] for _ in "abc"]]
    again = [env.reset(seed=3)[1]["state"], *[env.reset()[1]["state"] for _ in "abc"]]
    assert first == again and len(set(first)) > 1
    ends = [env.step(0)[2:4] for _ in range(50)]
    assert ends == [(False, False)] * 49 + [(False, True)]


def test_starts_are_uniform():
    env = ToroidalGrid(size=3)
    env.reset(seed=0)
    starts = [env.reset()[1]["state"] for _ in range(1800)]
    counts = np.bincount(starts, minlength=9)
    # Chi-square with 8 degrees of freedom: beyond 26.1 once in a thousand.
    assert np.sum((counts - 200) ** 2 / 200) < 26.1


def test_x_is_all_that_the_restricted_agent_sees():
    env = gymnasium.make(ID, observation="x")
    observed, info = env.reset(options={"state": (7, 4)})
    assert observed == 4 and info["state"] == 81
    assert env.observation_space == gymnasium.spaces.Discrete(11)


def test_pictures():
    env = gymnasium.make(ID, render_mode="rgb_array")
    env.reset(options={"state": (0, 10)})
    picture = env.render()
    assert picture.shape == (264, 264, 3) and picture.dtype == np.uint8
    centre, corner, agent = picture[132, 132], picture[3, 3], picture[12, 252]
    assert centre.sum() > 2 * corner.sum()
    assert tuple(agent) == (214, 40, 57)
    env = gymnasium.make(ID, render_mode="ansi", size=5, reward_width=0.5)
    env.reset(options={"state": (1, 0)})
    rows = env.render().splitlines()
    assert len(rows) == 5 and rows[1][0] == "A" and rows[2][2] == "%"


# === Vectorised ===


@pytest.mark.parametrize("observation", ["full", "x"])
def test_make_vec_gives_the_same_worlds(observation, rng):
    many = gymnasium.make_vec(
        ID, num_envs=3, observation=observation, max_episode_steps=4
    )
    assert isinstance(many.unwrapped, ToroidalGridVector)
    singles = [ToroidalGrid(observation=observation) for _ in range(3)]
    observed, info = many.reset(seed=5)
    assert many.observation_space.contains(observed)
    for single, state in zip(singles, info["state"], strict=True):
        single.reset(options={"state": divmod(int(state), 11)})
    for step in range(4):
        actions = rng.integers(4, size=3)
        observed, rewards, terminated, truncated, info = many.step(actions)
        assert many.observation_space.contains(observed)
        assert not terminated.any() and list(truncated) == [step == 3] * 3
        for i, single in enumerate(singles):
            alone, reward, *_ = single.step(actions[i])
            np.testing.assert_array_equal(observed[i], alone)
            assert rewards[i] == reward
    # The step after a truncation starts new episodes, whatever the actions.
    _, rewards, _, truncated, info = many.step(actions)
    assert not rewards.any() and not truncated.any()
    states = info["state"]
    _, rewards, *_ = many.step(np.zeros(3, int))
    expected = reward_landscape(11)[next_states(11)[states, 0]]
    np.testing.assert_array_equal(rewards, expected)


def test_all_copies_start_where_they_are_told():
    many = ToroidalGridVector(3)
    _, info = many.reset(options={"state": (2, 7)})
    np.testing.assert_array_equal(info["state"], [2 * 11 + 7] * 3)


def test_make_vec_has_the_registered_horizon():
    many = gymnasium.make_vec(ID, num_envs=2, render_mode="ansi")
    many.reset(seed=0)
    ends = [many.step(np.zeros(2, int))[3].all() for _ in range(50)]
    assert ends == [False] * 49 + [True]
    assert [text.count("A") for text in many.render()] == [1, 1]


# === Mistakes ===


def test_impossible_arguments():
    with pytest.raises(ValueError, match="`observation` must be one of full, x"):
        ToroidalGrid(observation="y")
    with pytest.raises(ValueError, match="`render_mode` must be None or one of"):
        ToroidalGrid(render_mode="human")
    with pytest.raises(ValueError, match=r"integers \(y, x\) in \[0, 11\)"):
        ToroidalGrid().reset(options={"state": (3, 11)})
    for env in (ToroidalGrid(), ToroidalGridVector(2)):
        with pytest.raises(ValueError, match="may hold `state` alone, found 'stat'"):
            env.reset(options={"stat": (1, 2)})
    with pytest.raises(ValueError, match="`seed` must be an integer >= 0"):
        ToroidalGridVector(2).reset(seed=[1, 2])
    with pytest.raises(ValueError, match="`num_envs` must be an integer >= 1"):
        ToroidalGridVector(0)


def test_impossible_steps():
    env = ToroidalGrid()
    with pytest.raises(ValueError, match="call `reset` before `step`"):
        env.step(0)
    env.reset(seed=0)
    for action in (4, True):
        with pytest.raises(ValueError, match=rf"integer in \[0, 4\), found {action}"):
            env.step(action)
    many = ToroidalGridVector(2)
    with pytest.raises(ValueError, match="call `reset` before `step`"):
        many.step(np.zeros(2, int))
    many.reset(seed=0)
    with pytest.raises(ValueError, match="must be 2 integers"):
        many.step(np.zeros(3, int))


def test_importing_registers():
    assert ID in gymnasium.registry
    assert rlm_tf.envs.ToroidalGrid is ToroidalGrid
