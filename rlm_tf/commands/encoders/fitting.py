"""Trains a model in a folder, from which a killed run goes on."""

from __future__ import annotations

import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
import tqdm

from rlm_tf.training import (
    DivergenceGuard,
    ExactResume,
    LinearRate,
    MetricsLog,
    ResumableBatches,
    TimeLimit,
    free_graphs_on_exit,
    interruptible,
    read_metrics_log,
)

METRICS, CHECKPOINTS = "metrics.jsonl", "checkpoints"
_CHECKPOINT_SECONDS = 60.0
PROBE_STEPS = 4
# So much of the time for training is planned; the rest is for moments in which the
# machine is slower.
_PLANNED = 0.92
# Most of it that is looked in.
_LOOKED = 0.1


class Fitted(NamedTuple):
    """What training was like.

    Attributes:
        steps: Of the optimiser.
        seconds: That they took, all processes of the run together.
        is_cut: Whether the time was over before all steps were done.
        curve: One dictionary an epoch.
        recoveries: How often training diverged and fell back.
    """

    steps: int
    seconds: float
    is_cut: bool
    curve: list[dict[str, Any]]
    recoveries: int


class Speed(NamedTuple):
    """How long training takes, in seconds.

    Attributes:
        step: One of training.
        look: One at what is held out.
        first: What the first step and the first look take beyond that.
    """

    step: float
    look: float
    first: float


def speed_of(
    build: Callable[[], keras.Model], data: ResumableBatches, valid: tf.data.Dataset
) -> Speed:
    """Returns how long training takes, with a model that is thrown away.

    Args:
        build: Returns it compiled.
        data: A few batches.
        valid: What is looked at.
    """

    def seconds(call: Callable[[], Any]) -> float:
        began = time.perf_counter()
        call()
        return time.perf_counter() - began

    with free_graphs_on_exit():
        model = build()

        def fit() -> None:
            model.fit(data.dataset, epochs=1, shuffle=False, verbose=0)

        def look() -> None:
            model.evaluate(valid, verbose=0)

        firsts = [seconds(call) for call in (fit, look)]
        epoch, one = min(seconds(fit), seconds(fit)), seconds(look)
    return Speed(epoch / data.steps, one, max(sum(firsts) - epoch - one, 0.0))


def seconds_left(seconds: float, speed: Speed) -> float:
    """Returns the time of all steps and looks that are planned."""
    return max(_PLANNED * seconds - speed.first, 0.0)


def looks_and_steps(
    seconds: float, speed: Speed, most_looks: int, least_steps: int
) -> tuple[int, int]:
    """Returns how many looks and steps are planned for a time.

    Args:
        seconds: Of training, with all that it takes.
        speed: How long each takes.
        most_looks: Of these there are less where they would take over a tenth.
        least_steps: Between two looks.
    """
    left = seconds_left(seconds, speed)
    looks = int(
        min(most_looks, left / speed.step / least_steps, _LOOKED * left / speed.look)
    )
    looks = max(looks, 1)
    steps = max(int((left - looks * speed.look) / speed.step), 1)
    return min(looks, steps), steps


def fit(
    model: keras.Model,
    data: ResumableBatches,
    valid: tf.data.Dataset,
    folder: pathlib.Path,
    *,
    epochs: int,
    warm_up: int,
    show: Callable[[dict[str, Any]], str],
    seconds: float | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    guard: DivergenceGuard | None = None,
    resume: bool = True,
) -> Fitted:
    """Trains a compiled model; a killed run goes on from its last checkpoint.

    Args:
        model: The model; its rates are the highest.
        data: What it is trained on.
        valid: What it is looked at after every epoch.
        folder: Where checkpoints and logs are.
        epochs: Of the data.
        warm_up: Steps in which the rate rises; then it falls to 0.
        show: Returns what is printed of an epoch's logs.
        seconds: Most time; None: any.
        callbacks: More of them, before the logs are written.
        guard: Against divergence.
        resume: Whether earlier checkpoints are used.
    """
    limit = TimeLimit(seconds or 1e9)
    guard = guard or DivergenceGuard(recover=True, monitor="val_loss")
    saver = ExactResume(
        folder / CHECKPOINTS,
        data,
        [
            *callbacks,
            MetricsLog(folder / METRICS, seconds=True),
            guard,
            LinearRate(epochs * data.steps, warm_up),
            limit,
        ],
        every_seconds=_CHECKPOINT_SECONDS,
        resume=resume,
    )
    with interruptible(saver):
        model.fit(
            data.dataset,
            epochs=epochs,
            shuffle=False,
            validation_data=valid,
            callbacks=[saver, _Lines(show, epochs)],
            verbose=0,
        )
    return Fitted(
        int(np.asarray(model.optimizer.iterations)),
        limit.spent,
        limit.stopped,
        read_metrics_log(folder / METRICS),
        guard.recoveries,
    )


class _Lines(keras.callbacks.Callback):
    """Prints a line an epoch; on a terminal a bar shows the steps between."""

    def __init__(self, show: Callable[[dict[str, Any]], str], epochs: int) -> None:
        super().__init__()
        self._show = show
        self._epochs = epochs
        self._bar: tqdm.tqdm | None = None

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._bar = tqdm.tqdm(
            total=self.params.get("steps"), unit="step", leave=False, disable=None
        )

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        if self._bar is not None:
            self._bar.update(batch - self._bar.n)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self._bar is not None:
            self._bar.close()
        print(f"{epoch + 1}/{self._epochs}: {self._show(dict(logs or {}))}", flush=True)
