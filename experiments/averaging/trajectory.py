"""All averages along one trajectory of a language model (Figures 3.3 and 3.4)."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Callable
from typing import Any

import keras

from experiments.averaging.config import AveragingConfig
from experiments.averaging.training import Texts, curve, nll_of, texts, train
from rlm_tf import averaging


def compute(config: AveragingConfig, folder: pathlib.Path) -> dict[str, Any]:
    """Returns the curve of every average, all along the same trajectory."""
    given = texts(config)
    period = _period(config, given)
    steps = given.train.steps * config.epochs
    by_training = ByTrainingLoss(given)
    callbacks = {
        "2TA, E": _two_tailed(given, period),
        "2TA, E/4": _two_tailed(given, max(1, period // 4)),
        "2TA, 4E": _two_tailed(given, 4 * period),
        "2TA, E, both emptied": _two_tailed(given, period, reset="both"),
        "2TA, E, algorithm 1": _two_tailed(given, period, extended=False),
        "2TA, E, by training loss": averaging.TwoTailedAveraging(
            by_training, every_steps=period
        ),
        "Polyak": _of(averaging.PolyakAverage(), given, period),
    }
    for start in config.starts:
        tail = averaging.TailAverage(max(1, round(start * steps)))
        callbacks[f"TA, {start:g}"] = _of(tail, given, period)
    for decay in config.decays:
        callbacks[f"EMA, {decay:g}"] = _of(
            averaging.ExponentialAverage(decay), given, period
        )
    for share in config.shares:
        callbacks[f"proportional, {share:g}"] = _of(
            averaging.ProportionalTailAverage(share), given, period
        )
    train(
        config,
        given,
        list(callbacks.values()),
        folder,
        epochs=config.epochs,
        callbacks=[by_training],
    )
    curves = {name: curve(callback) for name, callback in callbacks.items()}
    name = "2TA, E, by training loss"
    by_training.put_validation_losses(curves[name], callbacks[name])
    return {"period": period, "steps": steps, "curves": curves}


def compute_drops(config: AveragingConfig, folder: pathlib.Path) -> dict[str, Any]:
    """Returns the curve of the same run, not averaged, with two drops of the rate."""
    return _scheduled(config, folder, _piecewise(0.6, 0.8))


def compute_late_drop(config: AveragingConfig, folder: pathlib.Path) -> dict[str, Any]:
    """The same with one drop near the end."""
    return _scheduled(config, folder, _piecewise(0.85))


def compute_decay(config: AveragingConfig, folder: pathlib.Path) -> dict[str, Any]:
    """The same with a rate that falls to zero over the second half of the steps."""
    return _scheduled(config, folder, LinearDecay)


class LinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A rate that stays for half of the steps and then falls linearly to zero.

    Args:
        rate: In the first half.
        steps: Of the whole run.
    """

    def __init__(self, rate: float, steps: int):
        self.rate = rate
        self.steps = steps

    def __call__(self, step: Any) -> Any:
        left = 2.0 - 2.0 * keras.ops.cast(step, "float32") / self.steps
        return self.rate * keras.ops.clip(left, 0.0, 1.0)

    def get_config(self) -> dict[str, Any]:
        return {"rate": self.rate, "steps": self.steps}


Schedule = Callable[[float, int], keras.optimizers.schedules.LearningRateSchedule]


def _piecewise(*drops: float) -> Schedule:
    """A rate that is divided by 10 after each of these parts of the steps."""
    return lambda rate, steps: keras.optimizers.schedules.PiecewiseConstantDecay(
        [round(share * steps) for share in drops],
        [rate * 0.1**number for number in range(len(drops) + 1)],
    )


def _scheduled(
    config: AveragingConfig, folder: pathlib.Path, schedule: Schedule
) -> dict[str, Any]:
    given = texts(config)
    period = _period(config, given)
    steps = given.train.steps * config.epochs
    # A tail that never starts: the iterates themselves.
    iterates = _of(averaging.TailAverage(steps + 1), given, period)
    rate = schedule(config.learning_rate, steps)
    train(config, given, [iterates], folder, epochs=config.epochs, learning_rate=rate)
    return {"period": period, "steps": steps, "curves": {"drops": curve(iterates)}}


class ByTrainingLoss(keras.callbacks.Callback):
    """A loss of training text that also notes the validation loss of what it sees.

    It is a callback so that its notes are kept with the run.
    """

    def __init__(self, given: Texts):
        super().__init__()
        self._given = given
        # Validation loss by training loss, which no two iterates share.
        self._seen: dict[float, float] = {}

    def __call__(self, model: keras.Model) -> float:
        loss = nll_of(model, self._given.train_loss)
        self._seen[loss] = nll_of(model, self._given.valid)
        return loss

    def get_state(self) -> dict[str, Any]:
        return {"seen": list(self._seen.items())}

    def set_state(self, state: dict[str, Any]) -> None:
        self._seen = dict(state["seen"])

    def put_validation_losses(
        self, columns: dict[str, list[Any]], callback: averaging.WeightAveraging
    ) -> None:
        """Puts the validation loss of what was proposed beside its training loss."""
        for name in ("loss", "raw_loss"):
            columns[f"training_{name}"] = columns[name]
            columns[name] = [
                round(self._seen[row[name]], 5) for row in callback.evaluations
            ]


def _period(config: AveragingConfig, given: Texts) -> int:
    return max(1, math.ceil(given.train.steps / config.evaluations))


def _two_tailed(given: Texts, period: int, **options: Any) -> averaging.WeightAveraging:
    return averaging.TwoTailedAveraging(
        given.valid, monitor="nll", every_steps=period, **options
    )


def _of(
    average: averaging.WeightAverage, given: Texts, period: int
) -> averaging.WeightAveraging:
    return averaging.WeightAveraging(
        average, given.valid, monitor="nll", every_steps=period
    )


# === Where the assumptions fail ===


def compute_overfitting(
    config: AveragingConfig, folder: pathlib.Path
) -> dict[str, Any]:
    """Returns 2TA of a run that learns a small text by heart (Figure 3.5)."""
    given = texts(config, config.overfit_fraction)
    return _three_kinds(
        config, given, folder, epochs=config.overfit_epochs, dropout=False
    )


def compute_basin(config: AveragingConfig, folder: pathlib.Path) -> dict[str, Any]:
    """Returns 2TA of a run that leaves for another basin midway (Figure 3.6).

    What sends it there is a learning rate that is multiplied for a tenth of the steps.
    """
    given = texts(config)
    steps = given.train.steps * config.basin_epochs
    rate = config.learning_rate / 3
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay(
        [steps // 2, steps // 2 + max(1, steps // 10)],
        [rate, rate * config.basin_factor, rate],
    )
    found = _three_kinds(
        config, given, folder, epochs=config.basin_epochs, learning_rate=schedule
    )
    return {**found, "leaves_at": steps // 2}


def _three_kinds(
    config: AveragingConfig, given: Texts, folder: pathlib.Path, **options: Any
) -> dict[str, Any]:
    """Returns 2TA in both readings, and without extensions, along one run."""
    period = _period(config, given)
    callbacks = {
        "2TA": _two_tailed(given, period),
        "2TA, both emptied": _two_tailed(given, period, reset="both"),
        "2TA, algorithm 1": _two_tailed(given, period, extended=False),
    }
    train(config, given, list(callbacks.values()), folder, **options)
    curves = {name: curve(callback) for name, callback in callbacks.items()}
    return {"period": period, "curves": curves}
