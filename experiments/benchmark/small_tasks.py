"""Many small runs at once: REINFORCE on the grid, and logistic regression."""

from __future__ import annotations

import gymnasium
import keras
import numpy as np
import tensorflow as tf

from experiments.benchmark.preset import Preset
from experiments.benchmark.timing import Line, Row, Timings
from experiments.kit.grid_config import ReinforceConfig
from experiments.kit.grid_study import Arm, GridStudy, trained_cells
from experiments.kit.timing import duration, elapsed
from rlm_tf.data import LinearDiscriminant
from rlm_tf.envs import collected_trajectories, trajectory_draws
from rlm_tf.layers import DiscretePolicy
from rlm_tf.models import (
    LogisticIMM,
    ReinforceIMM,
    fit_logistic_runs,
    published_ratio,
)
from rlm_tf.restricted import Belief, TabularModel

# What the authors' script takes, as its repository documents it.
_AUTHORS_EPOCH = 9e-3
_REPETITIONS = 5


def measure_grid(preset: Preset, seeds: tuple[int, ...]) -> Row:
    """Times epochs of REINFORCE with IMM, side by side and alone, and Figure 3.

    The peer of runs side by side is the published script, at what its authors document
    for an epoch; that of one run is the same model under Keras' `fit()` on gymnasium.
    """
    timings = Timings()
    config = ReinforceConfig(
        epochs=(preset.grid_epochs,),
        search_epochs=(preset.grid_epochs,),
        runs=preset.grid_runs,
    )
    study = GridStudy(config)
    target = study.target(0.0)
    arms = [Arm(target, 0.25)] * 4
    study.returns(arms, 1)
    for _ in seeds:
        for _ in range(_REPETITIONS):
            step = elapsed(lambda: study.returns(arms, preset.grid_epochs))
            timings.add("side by side", step)
    epochs = preset.grid_epochs * preset.grid_runs * len(arms)
    side_by_side = timings.median("side by side") / epochs
    alone = _fit_epoch(study, target, preset.grid_epochs, seeds[0])
    lines = [
        Line(
            f"REINFORCE epoch with IMM, one of {preset.grid_runs * len(arms)} runs "
            "side by side",
            duration(side_by_side),
            f"authors' script: {duration(_AUTHORS_EPOCH)} (documented)",
            f"{side_by_side / _AUTHORS_EPOCH:.1g}",
        ),
        Line(
            "REINFORCE epoch with IMM, one run in fit() on gymnasium",
            duration(alone),
            f"authors' script: {duration(_AUTHORS_EPOCH)} (documented)",
            f"{alone / _AUTHORS_EPOCH:.2g}",
            "at most 1",
        ),
    ]
    numbers = {"side_by_side_s": side_by_side, "fit_s": alone}
    if preset.whole_figures:
        seconds = trained_cells(ReinforceConfig())["seconds_after_start"]
        numbers["figure_3_s"] = seconds
        # Four arms there, thirty seeds, as many epochs as their counts sum up to.
        documented = sum(ReinforceConfig().epochs) * 4 * 30 * _AUTHORS_EPOCH
        lines.append(
            Line(
                "Figure 3: 75 cells of 30 runs, after start-up",
                duration(seconds),
                f"authors' script, 60 cells: {duration(documented)} (documented)",
                f"{seconds / documented:.1g}",
                "at most 60 s",
            )
        )
    return Row(lines, {**numbers, "times": timings.numbers()})


def measure_logistic(preset: Preset, seeds: tuple[int, ...]) -> Row:
    """Times steps of gradient descent with IMM, many data sets side by side.

    The peer is one data set under Keras' `fit()`.
    """
    timings = Timings()
    task = LinearDiscriminant()
    runs, steps = preset.logistic_runs, preset.logistic_steps
    lines = []
    numbers = {}
    for size in preset.logistic_sizes:
        x, y = task.sample(size, np.random.default_rng(seeds[0]), runs)
        probs = task.restricted().positive_probs(x[..., :1].reshape(-1, 1))
        targets = tf.reshape(probs, y.shape)
        name = f"{size} examples"

        def train(x=x, y=y, targets=targets, size=size) -> None:
            weights = fit_logistic_runs(
                x, y, targets, published_ratio(size), steps=steps
            )
            weights.biases.numpy()

        timings.run({name: train}, len(seeds) * _REPETITIONS, warm_up=1)
        ours = timings.median(name) / (steps * runs)
        model = LogisticIMM(task.restricted(), ratio=published_ratio(size))
        model.compile(keras.optimizers.SGD(1.0))

        def fit(x=x[0], y=y[0], model=model, size=size) -> None:
            model.fit(x, y, batch_size=size, epochs=50, verbose=0, shuffle=False)

        fit()
        alone = elapsed(fit) / 50
        numbers[name] = {"ours_s": ours, "fit_s": alone}
        lines.append(
            Line(
                f"logistic regression with IMM, {name}, a step of one of {runs} data "
                "sets side by side",
                duration(ours),
                f"one data set in fit(): {duration(alone)}",
                f"{ours / alone:.1g}",
            )
        )
    return Row(lines, {**numbers, "times": timings.numbers()})


def _fit_epoch(study: GridStudy, target: np.ndarray, epochs: int, seed: int) -> float:
    """Returns the seconds of an epoch of `ReinforceIMM.fit` on the environment."""
    config = study.config
    states = config.size**2
    model = ReinforceIMM(
        DiscretePolicy(states, 4, config.hidden_units, seed=seed),
        TabularModel.from_probs(target),
        Belief.from_matrix(study.beliefs),
    )
    model.compile(keras.optimizers.Adam(config.learning_rate, epsilon=1e-8))
    env = gymnasium.make("rlm_tf/ToroidalGrid-v0", size=config.size)

    def fit() -> None:
        draws = trajectory_draws(seed, epochs, config.trajectory, 1, states)
        data = collected_trajectories(env, model.action_probs, draws)
        model.fit(data, epochs=epochs, steps_per_epoch=1, shuffle=False, verbose=0)

    fit()
    return elapsed(fit) / epochs
