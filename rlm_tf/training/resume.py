"""Exact resumption of `fit()` after a kill at any moment."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.training import training_state
from rlm_tf.training.checkpoint import Checkpoint, CheckpointStore
from rlm_tf.training.resumable_batches import ResumableBatches
from rlm_tf.training.state_variables import first_not_finite, fixed_digest, replica_of
from rlm_tf.workers import Workers

_LOGGER = logging.getLogger(__name__)
# Between which no worker knows of another's clock and interrupts: asking takes as long
# as adding up gradients does.
_STEPS_BETWEEN_QUESTIONS = 10
_RUNS_OUT = "Your input ran out of data"


class ExactResume(keras.callbacks.Callback):
    """Checkpoints from which `fit()` goes on as if it had never been interrupted.

        batches = ResumableBatches(contiguous_batches(...))
        halving = LearningRateHalving()
        resume = ExactResume("run/checkpoints", batches, [MetricsLog(...), halving])
        model.fit(batches.dataset, epochs=20, shuffle=False, callbacks=[resume],
                  validation_data=...)

    Run again after a kill, the same program goes on from the last checkpoint, in the
    middle of an epoch if need be, and ends with the same bits in weights, metrics,
    `History` and the state of `callbacks`; after a completed run it loads the end and
    trains no further. A checkpoint holds every variable that `state_variables` finds
    (weights, optimiser, seed generators, carried states, metrics), the position in the
    data and the callbacks' state; of restricted models only a digest, by which others
    are refused. When checkpoints are written changes no result.
    They are written after every epoch and, within an epoch, as often as asked.

    Bits agree when the uninterrupted run is reproducible: every seed is given (a run
    killed before its first checkpoint starts anew), and the device's operations are
    deterministic (`tf.config.experimental.enable_op_determinism`, needed on a GPU).

    The callbacks that remember something from step to step belong in `callbacks`, not
    in `fit(callbacks=...)`: this callback runs them, in order, so that their state and
    the model's are of the same moment. See `get_callback_state` for what is kept of
    them. Their `on_epoch_begin` runs once more when an epoch is resumed in its middle;
    their steps are counted from the true start of the epoch.

    Of several workers each needs the same directory, on a file system that they share:
    the chief writes, and each of the others what its replicas have for themselves. All
    go on from one checkpoint, and a number of processes with as many replicas in all
    may go on from another's. Time and interrupts are asked of all every few steps.

    `interrupt()` ends training before the next step, with a checkpoint: what a program
    may do at Ctrl-C.

    Args:
        directory: Folder of the checkpoints, one for each run.
        batches: The batches whose `dataset` is given to `fit()`.
        callbacks: Callbacks to run and to keep the state of.
        every_seconds: Within an epoch, a checkpoint is written when the last is this
            old; None: not for that reason.
        every_steps: The same in steps; None: not for that reason.
        after_epochs: Whether one is written after every epoch; else after the last, and
            after others when the one before is old: for epochs that take less time than
            a checkpoint.
        keep: Number of checkpoints kept.
        resume: Whether to go on from what the folder holds; False removes it.

    Raises:
        ValueError: If an argument is out of range. When training begins: if the
            checkpoint has another number of steps an epoch, callbacks of other classes,
            variables of other names, shapes or dtypes, or other restricted models, or
            is of a format that this version does not know (older ones are resumed).
            Nothing else is compared: text, dropout, seeds and other settings are the
            program's to keep (`experiments.imm_lm` compares its settings and text).
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        batches: ResumableBatches,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        *,
        every_seconds: float | None = 120.0,
        every_steps: int | None = None,
        after_epochs: bool = True,
        keep: int = 2,
        resume: bool = True,
    ):
        super().__init__()
        for name, value in (
            ("every_seconds", every_seconds),
            ("every_steps", every_steps),
        ):
            if value is not None and not value > 0:
                raise ValueError(
                    f"ExactResume: `{name}` must be positive or None, found {value}."
                )
        self.store = CheckpointStore(directory, keep=keep)
        self.batches = batches
        self.callbacks = list(callbacks)
        self.every_seconds = every_seconds
        self.every_steps = every_steps
        self.after_epochs = after_epochs
        self.resume = resume
        self._pending: Checkpoint | None = None
        self._initial_epoch: int | None = None
        self._start = 0
        self._epoch = 0
        self._last_step = 0
        self._last_time = 0.0
        self._epochs: list[int] = []
        self._logs: list[dict[str, float]] = []
        self._fixed_digest = ""
        self._muted: warnings.catch_warnings | None = None
        self._interrupted = False
        self._workers = Workers(tf.distribute.get_strategy())
        # With several workers: what all know, and what is to be told to all.
        self._is_late = self._is_asked = False
        # Keras waits for every step's logs as soon as one callback has this hook.
        if any(_has_batch_end(callback) for callback in self.callbacks):
            self.on_train_batch_end = self._run_train_batch_end

    def interrupt(self) -> None:
        """Asks `fit()` for a checkpoint at the next moment possible.

        That is before the next step or at the end of the epoch; there `fit()` raises
        KeyboardInterrupt. May be called from a signal handler.
        """
        self._interrupted = True

    # === Hooks of training ===

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        steps = self.params.get("steps")
        if steps != self.batches.steps:
            raise ValueError(
                f"ExactResume: `fit()` was given {steps} steps an epoch, `batches` has "
                f"{self.batches.steps}. Give it `batches.dataset`."
            )
        self._run("on_train_begin", logs)
        self._epochs, self._logs = [], []
        self._last_time = time.monotonic()
        self._fixed_digest = fixed_digest(self.model)
        self._workers = Workers(self.model.distribute_strategy)
        if not self.resume:
            if self._workers.is_chief:
                self.store.clear()
            self._workers.wait()
        self._pending = self.store.load_latest(self._workers)
        self._initial_epoch = self.model._initial_epoch
        if self._pending is None:
            return
        state = self._pending.state
        training_state.check_written_for(self._pending, self._identity())
        # The one way to move fit()'s epoch counter; Keras' BackupAndRestore uses it.
        self.model._initial_epoch = (
            self.params["epochs"] if state["stopped"] else state["epoch"]
        )
        over = self.model._initial_epoch >= self.params["epochs"]
        where = f"epoch {state['epoch'] + 1}, step {state['step']} of {steps}"
        if over:
            where = "nothing is left to train"
        _LOGGER.info("Resuming from %s: %s.", self._pending.path, where)
        if over:
            # Now: after its epochs fit() may put averaged weights in place.
            self._restore_state(self._pending)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._epoch, self._start = epoch, 0
        checkpoint, self._pending = self._pending, None
        if checkpoint is not None:
            self.model._initial_epoch = self._initial_epoch
            self._start = checkpoint.state["step"]
            self._restore(checkpoint)
            if self._start == 0:
                # Metrics are those of the last epoch; fit() had just reset them.
                self.model.reset_metrics()
        self._run("on_epoch_begin", epoch, logs)
        if checkpoint is not None and self._start > 0:
            # Callbacks have begun this epoch before: undo what they just did.
            self._restore(checkpoint)
            self._mute()
        self.batches.seek(epoch, self._start)
        self._last_step = self._start

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        step = self._start + batch
        if step >= self.batches.steps:
            # A resumed epoch is over earlier than fit() thinks. It must not find that
            # out itself: a step that fails for lack of data still moves seeds on.
            raise StopIteration
        self._agree(step)
        if step > self._last_step and (self._interrupted or self._is_due(step)):
            self._save(self._epoch, step)
            self._last_step = step
        self._stop_if_interrupted()
        self._run("on_train_batch_begin", step, logs)

    def _run_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        self._run("on_train_batch_end", self._start + batch, logs)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._unmute()
        self._run("on_epoch_end", epoch, logs)
        self._epochs.append(epoch)
        self._logs.append({name: float(v) for name, v in (logs or {}).items()})
        is_last = epoch + 1 >= self.params["epochs"] or self.model.stop_training
        late = self._is_late if self._workers.are_several else self._is_old()
        if self.after_epochs or is_last or self._interrupted or late:
            self._save(epoch + 1, 0)
        self._agree(0)
        self._stop_if_interrupted()

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        if self._pending is not None:
            # Nothing was left to train.
            self._restore_history(self._pending)
            self._pending = None
        self.model._initial_epoch = self._initial_epoch
        self._run("on_train_end", logs)

    # === Hooks of evaluation, passed on ===

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._unmute()
        self._run("on_test_begin", logs)

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        self._run("on_test_end", logs)

    def set_model(self, model: keras.Model) -> None:
        super().set_model(model)
        self._run("set_model", model)

    def set_params(self, params: dict[str, Any]) -> None:
        super().set_params(params)
        self._run("set_params", params)

    # === Checkpoints ===

    def _is_due(self, step: int) -> bool:
        if self.every_steps is not None and step - self._last_step >= self.every_steps:
            return True
        if self._workers.are_several:
            return self._is_late
        return self._is_old()

    def _is_old(self) -> bool:
        age = time.monotonic() - self._last_time
        return self.every_seconds is not None and age >= self.every_seconds

    def _agree(self, step: int) -> None:
        """Has all workers know at the same step what one of them wants."""
        if not self._workers.are_several:
            return
        self._is_late = False
        interrupted, self._interrupted = self._interrupted, False
        if step % _STEPS_BETWEEN_QUESTIONS:
            self._is_asked |= interrupted
            return
        self._is_late, self._interrupted = self._workers.any(
            self._is_old(), interrupted or self._is_asked
        )
        self._is_asked = False

    def _save(self, epoch: int, step: int) -> None:
        self._last_time = time.monotonic()
        broken = first_not_finite(self.model)
        if broken is not None:
            _LOGGER.warning(
                "No checkpoint at epoch %d, step %d: `%s` is not finite.",
                epoch + 1,
                step,
                broken,
            )
            return
        callbacks, arrays = training_state.capture(self.model, self.callbacks)
        state = {
            "epoch": epoch,
            "step": step,
            "stopped": step == 0 and bool(self.model.stop_training),
            "history": {"epochs": self._epochs, "logs": self._logs},
            "callbacks": callbacks,
            **self._identity(),
        }
        own = {name: a for name, a in arrays.items() if replica_of(name) is not None}
        shared = {name: a for name, a in arrays.items() if name not in own}
        self.store.save(state, shared, own, self._workers)

    def _identity(self) -> dict[str, Any]:
        """Returns what a checkpoint must share with this run."""
        return {
            "steps": self.batches.steps,
            "callback_names": [type(callback).__name__ for callback in self.callbacks],
            "restricted_models": self._fixed_digest,
        }

    def _restore(self, checkpoint: Checkpoint) -> None:
        self._restore_state(checkpoint)
        self._restore_history(checkpoint)

    def _restore_state(self, checkpoint: Checkpoint) -> None:
        training_state.restore(
            self.model,
            self.callbacks,
            checkpoint,
            lambda: next(iter(self.batches.dataset)),
        )

    def _restore_history(self, checkpoint: Checkpoint) -> None:
        state = checkpoint.state
        self._epochs = list(state["history"]["epochs"])
        self._logs = [dict(row) for row in state["history"]["logs"]]
        history = self.model.history
        history.epoch = list(self._epochs)
        history.history = {}
        for row in self._logs:
            for name, value in row.items():
                history.history.setdefault(name, []).append(value)

    # === Parts ===

    def _stop_if_interrupted(self) -> None:
        if self._interrupted:
            self._interrupted = False
            raise KeyboardInterrupt

    def _run(self, hook: str, *arguments: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, hook)(*arguments)

    def _mute(self) -> None:
        """Silences what Keras says when an epoch gives fewer batches than others."""
        self._muted = warnings.catch_warnings()
        self._muted.__enter__()
        warnings.filterwarnings("ignore", message=_RUNS_OUT)

    def _unmute(self) -> None:
        if self._muted is not None:
            self._muted.__exit__(None, None, None)
            self._muted = None


def _has_batch_end(callback: keras.callbacks.Callback) -> bool:
    return any(
        getattr(type(callback), name) is not getattr(keras.callbacks.Callback, name)
        for name in ("on_train_batch_end", "on_batch_end")
    )
