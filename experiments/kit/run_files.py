"""Files and progress of runs, shared by the binaries."""

from __future__ import annotations

import pathlib
import shutil
import time
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tqdm

from experiments.kit import run_workers
from experiments.kit.folders import remove
from experiments.kit.machine import OtherPrograms
from rlm_tf.averaging import WeightAveraging
from rlm_tf.command_line.json_files import first_not_finite
from rlm_tf.training import (
    ExactResume,
    MetricsLog,
    ResumableBatches,
    TrainingDivergedError,
    interruptible,
    read_metrics_log,
)
from rlm_tf.workers import Workers


def check_converged(**measured: Any) -> None:
    """Raises TrainingDivergedError if what a trained model is worth is not finite.

    Args:
        **measured: Numbers by name, in any nesting.
    """
    found = first_not_finite(measured)
    if found is not None:
        raise TrainingDivergedError(
            f"Training diverged: {found}. Lower the learning rate."
        )


# Of studies whose runs train several models, in the folder of a run.
TRAININGS = "trainings"
# What a model gives each token of held-out texts, for means of several.
LOG_PROBS = "log_probs.npz"


def clear_run(folder: pathlib.Path) -> None:
    """Removes what a training run has written into its folder."""
    for name in ("checkpoints", "tensorboard", TRAININGS):
        remove(folder / name)
    for name in ("metrics.jsonl", "model.keras", "vocabulary.txt", "config.json"):
        remove(folder / name)
    remove(folder / LOG_PROBS)


def fit_resumably(
    model: keras.Model,
    data: ResumableBatches,
    folder: pathlib.Path,
    epochs: int,
    kept: Sequence[keras.callbacks.Callback],
    checkpoint_seconds: float,
    others: Sequence[keras.callbacks.Callback] = (),
    **options: Any,
) -> None:
    """Trains a model of a run's folder, which goes on from its last checkpoint.

    Args:
        model: A compiled model.
        data: Its batches.
        folder: Gets `checkpoints`; its name stands in front of the progress.
        epochs: Of the whole run.
        kept: Callbacks whose state checkpoints have.
        checkpoint_seconds: Between checkpoints; there is one after every epoch, too.
        others: Callbacks that a resumed run begins anew.
        **options: Of `fit`.

    Raises:
        Followed: After training, on workers that are not the chief.
    """
    saver = ExactResume(
        folder / "checkpoints", data, kept, every_seconds=checkpoint_seconds
    )
    with interruptible(saver):
        model.fit(
            data.dataset,
            epochs=epochs,
            shuffle=False,
            callbacks=[saver, *others, EpochProgress(folder.name, epochs)],
            verbose=0,
            **options,
        )
    run_workers.end_unless_chief()


class TensorBoardScalars(keras.callbacks.Callback):
    """Shows the rows of a `MetricsLog`, which comes before it, in TensorBoard.

    Unlike Keras' own callback it does not make every step wait for its logs. A resumed
    run writes its events anew, so that no point is doubled.
    """

    def __init__(self, folder: pathlib.Path, log: MetricsLog):
        super().__init__()
        self.folder = folder
        self.log = log
        self._writer: Any = None

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if not Workers(self.model.distribute_strategy).is_chief:
            return
        rows = read_metrics_log(self.log.path)
        if self._writer is None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self._writer = tf.summary.create_file_writer(str(self.folder))
        else:
            rows = rows[-1:]
        with self._writer.as_default():
            for row in rows:
                for name, value in row.items():
                    if name != "epoch" and value is not None:
                        # As progress counts; rows begin with epoch 0.
                        tf.summary.scalar(name, float(value), step=row["epoch"] + 1)
        self._writer.flush()


class StepTimer(keras.callbacks.Callback):
    """Measures training steps alone, without validation and other evaluations.

    Without validation data it comes before what evaluates or writes checkpoints at an
    epoch's end. Checkpoints within an epoch count.

    Args:
        averages: What evaluates within epochs, whose time does not count.
    """

    def __init__(self, averages: WeightAveraging | None = None) -> None:
        super().__init__()
        self._averages = averages
        self._evaluated = 0.0
        self._times: list[float] = []
        self._others: list[float] = []
        self._steps = 0
        self._began = 0.0
        self._watch = OtherPrograms()

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._steps, self._began = 0, time.perf_counter()
        self._evaluated = self._averages.seconds if self._averages else 0.0
        self._watch = OtherPrograms()

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        self._steps += 1

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        # By now Keras has read the metrics of the last step.
        self._measure()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._measure()

    def _measure(self) -> None:
        if self._steps:
            seconds = time.perf_counter() - self._began
            if self._averages:
                seconds -= self._averages.seconds - self._evaluated
            self._times.append(1000 * seconds / self._steps)
            others = self._watch.cores()
            if others is not None:
                self._others.append(others)
        self._steps = 0

    def get_state(self) -> dict[str, Any]:
        """Returns the times so far, for a checkpoint."""
        return {"times": self._times, "others": self._others}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over what `get_state` returned."""
        self._times, self._others = list(state["times"]), list(state["others"])

    def result(self) -> dict[str, float | None]:
        """Returns medians over the epochs.

        `step_ms`, milliseconds a training step, and `other_cores`, how many cores other
        programs kept busy meanwhile.
        """
        return {
            "step_ms": float(np.median(self._times)) if self._times else None,
            "other_cores": float(np.median(self._others)) if self._others else None,
        }


class EpochProgress(keras.callbacks.Callback):
    """Prints one line an epoch: where training stands and when it will be over.

    On a terminal a bar shows the steps of the epoch meanwhile. Training that ends
    before its last epoch is said to.
    """

    def __init__(self, name: str, epochs: int):
        super().__init__()
        self.name = name
        self.epochs = epochs
        self._began = time.monotonic()
        self._first: int | None = None
        self._bar: tqdm.tqdm | None = None

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self._first is None:
            self._first = epoch
            self._began = time.monotonic()
        self._bar = tqdm.tqdm(
            total=self.params.get("steps"),
            desc=f"{self.name}: epoch {epoch + 1}/{self.epochs}",
            unit="step",
            leave=False,
            disable=None,
        )

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        # Not `on_train_batch_end`, for which Keras waits for the logs of every step.
        if self._bar is not None:
            self._bar.update(batch - self._bar.n)

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._close_bar()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._close_bar()
        done = epoch - (self._first or 0) + 1
        each = (time.monotonic() - self._began) / done
        parts = [f"{self.name}: epoch {epoch + 1}/{self.epochs}"]
        for key in ("perplexity", "val_perplexity", "averaged_loss", "imm"):
            if logs and key in logs:
                parts.append(f"{key} {logs[key]:.2f}")
        parts.append(f"{each:.1f} s/epoch")
        parts.append(f"{(self.epochs - epoch - 1) * each / 60:.1f} min left")
        print("  ".join(parts), flush=True)
        stopped = getattr(self.model, "stop_training", False)
        if stopped and epoch + 1 < self.epochs:
            print(
                f"{self.name}: stopped early, after epoch {epoch + 1} of "
                f"{self.epochs}: validation does not improve any more",
                flush=True,
            )

    def _close_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
