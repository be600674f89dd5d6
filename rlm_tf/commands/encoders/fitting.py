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
# Of the time for training what a step was measured to take is planned; the rest is for
# moments in which the machine is slower.
_PLANNED = 0.92


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


def step_seconds(build: Callable[[], keras.Model], data: ResumableBatches) -> float:
    """Returns how long a training step takes, with a model that is thrown away.

    Args:
        build: Returns it compiled.
        data: A few batches.
    """
    batches = data.dataset
    with free_graphs_on_exit():
        model = build()
        model.fit(batches, epochs=1, shuffle=False, verbose=0)
        times = []
        for _ in range(2):
            began = time.perf_counter()
            model.fit(batches, epochs=1, shuffle=False, verbose=0)
            times.append((time.perf_counter() - began) / data.steps)
    return min(times)


def steps_in(seconds: float, step: float) -> int:
    """Returns how many steps are planned for a time."""
    return max(int(_PLANNED * seconds / step), 1)


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
