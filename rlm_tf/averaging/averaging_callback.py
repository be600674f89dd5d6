"""Callbacks that average the weights of a model in training."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.averaging.optimizer_updates import updates_done
from rlm_tf.averaging.two_tailed_average import TwoTailedAverage
from rlm_tf.averaging.weight_average import WeightAverage
from rlm_tf.averaging.weight_sum import Weights, to_numpy
from rlm_tf.checks import check_integer

ModelLoss = Callable[[keras.Model], float]


class WeightAveraging(keras.callbacks.Callback):
    """Averages the trainable weights after every step, and evaluates the average.

        averaging = WeightAveraging(TailAverage(start=1000), valid.dataset())
        model.fit(..., callbacks=[averaging])
        with averaging.averaged(model):
            model.evaluate(test.dataset())
            export_language_model(model, vocabulary, "saved_models/mine")

    The model keeps its own weights: averages are put into it for evaluations only, and
    by `averaged` and `best`, which put its own back in the end whatever happens. What
    layers remember besides trainable weights, such as the moving statistics of batch
    normalisation, is not averaged.

    After an epoch its logs get the latest evaluation, `{name}_loss`, `{name}_length`
    and so on, for logs of metrics and for early stopping, of which Keras must be told
    `EarlyStopping("averaged_loss", mode="min")` (its `restore_best_weights` knows the
    model's own weights only: use `best`); put this callback before those that read
    them. Two-Tailed Averaging evaluates the weights themselves, too
    (`{name}_raw_loss`), so `fit()` needs no validation data of its own. Among the
    callbacks of `ExactResume`, which keeps its state, a killed run goes on with the
    same bits.

    Args:
        average: The average; one that was never updated.
        loss: What is to be low: a data set for `model.evaluate`, of whose results
            `monitor` is taken, or a function of the model. Metrics of the running epoch
            and the carried states of training are left alone. None: no evaluations,
            for averages that do not adapt to losses.
        monitor: See `loss`.
        every_steps: Steps between evaluations, the period E; None: an epoch.
        on_device: Whether sums are kept in the memory of the device that computes; else
            in that of the host, at the price of a copy of the weights after every step.
        name: Prefix of the logs, another for each such callback.

    Attributes:
        average: The average.
        evaluations: One dictionary for each evaluation so far: `step`, `loss`,
            `length`, and what the average tells about it.
        best_loss: The lowest loss so far; infinity before the first.
        seconds: What evaluations have taken, of this process.

    Raises:
        ValueError: If an argument is out of range, or an average that adapts to losses
            has none; when training begins, if several steps are executed at once, of
            which only the last would be averaged.
    """

    # What Keras asks before it lets other threads wait for the logs of steps.
    async_safe = True

    def __init__(
        self,
        average: WeightAverage,
        loss: tf.data.Dataset | ModelLoss | None = None,
        *,
        monitor: str = "loss",
        every_steps: int | None = None,
        on_device: bool = True,
        name: str = "averaged",
    ) -> None:
        super().__init__()
        if not isinstance(average, WeightAverage):
            raise ValueError(
                f"{type(self).__name__}: `average` must be a WeightAverage, found "
                f"{type(average).__name__}."
            )
        if average.steps:
            raise ValueError(
                f"{type(self).__name__}: `average` must be new, found one of "
                f"{average.steps} iterates; a killed run goes on with ExactResume."
            )
        if isinstance(loss, tuple | list | np.ndarray):
            raise ValueError(
                f"{type(self).__name__}: `loss` must be a data set or a function "
                f"of the model, found {type(loss).__name__}."
            )
        if average.adapts and loss is None:
            raise ValueError(
                f"{type(self).__name__}: {type(average).__name__} adapts to losses; "
                "`loss` must be a data set or a function of the model, found None."
            )
        if every_steps is not None:
            check_integer(type(self).__name__, "every_steps", every_steps, 1)
        self.average = average
        self.loss = loss
        self.monitor = monitor
        self.every_steps = every_steps
        self.on_device = on_device
        self.name = name
        self.evaluations: list[dict[str, Any]] = []
        self.best_loss = math.inf
        self.seconds = 0.0
        self._best: list[np.ndarray] = []
        # Whether a step began whose iterate was not taken; iterations before it.
        self._pending = False
        self._iterations: int | None = None
        # Steps of this epoch.
        self._begun = self._ended = 0

    # === Training ===

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        if self.model.steps_per_execution != 1:
            raise ValueError(
                f"{type(self).__name__} needs every iterate: compile with "
                f"steps_per_execution=1, found {self.model.steps_per_execution}."
            )
        if not self.average.steps and self.model.built:
            self.average.start(self._weights(self.model))

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._begun = self._ended = 0

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        # Not at the end of a batch, which `async_safe` may leave to another thread.
        self._take_pending()
        self._pending = True
        self._begun += 1
        self._iterations = updates_done(self.model)

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        self._ended += 1

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        # Of an unknown number of batches Keras begins one that does not exist.
        self._pending = self._pending and self._ended == self._begun
        self._take_pending()
        if self.every_steps is None and self.loss is not None and self.average.steps:
            self._evaluate()
        if logs is not None and self.evaluations:
            for key, value in self.evaluations[-1].items():
                if key in ("step", "event"):
                    continue
                if f"{self.name}_{key}" in logs:
                    raise ValueError(
                        f"{type(self).__name__}: the logs have `{self.name}_{key}` "
                        "already; give each such callback a `name` of its own."
                    )
                logs[f"{self.name}_{key}"] = value

    def _take_pending(self) -> None:
        if not self._pending:
            return
        self._pending = False
        done = updates_done(self.model)
        if done is not None and done == self._iterations:
            return
        self.average.update(self._weights(self.model))
        due = self.every_steps and self.average.steps % self.every_steps == 0
        if due and self.loss is not None:
            self._evaluate()

    def _evaluate(self) -> None:
        began = time.perf_counter()
        model = self.model
        variables = model.trainable_variables
        raw = to_numpy([variable.value for variable in variables])

        def loss_fn(weights: Weights) -> float:
            _assign(variables, weights)
            return self._loss_of(model)

        try:
            result = self.average.evaluate(loss_fn, raw)
        finally:
            _assign(variables, raw)
        row: dict[str, Any] = {
            "step": self.average.steps,
            "loss": float(result.loss),
            "length": int(result.length),
        }
        if isinstance(self.average, TwoTailedAverage):
            row |= {
                "short_length": self.average.short_length,
                "long_length": self.average.long_length,
                "event": self.average.event,
            }
            row |= {f"{k}_loss": v for k, v in self.average.losses.items()}
        self.evaluations.append(row)
        if result.loss < self.best_loss:
            self.best_loss = float(result.loss)
            self._best = to_numpy(result.weights)
        self.seconds += time.perf_counter() - began

    def _loss_of(self, model: keras.Model) -> float:
        if callable(self.loss):
            return float(self.loss(model))
        # The metrics of the running epoch go on after this.
        kept = [(v, v.value.numpy()) for m in model.metrics for v in m.variables]
        results = model.evaluate(self.loss, return_dict=True, verbose=0)
        for variable, value in kept:
            variable.assign(value)
        if self.monitor not in results:
            raise ValueError(
                f"{type(self).__name__} monitors `{self.monitor}`, which is not among "
                f"the results of `evaluate`: {sorted(results)}."
            )
        return float(results[self.monitor])

    def _weights(self, model: keras.Model) -> list[Any]:
        values = [variable.value for variable in model.trainable_variables]
        return values if self.on_device else [value.numpy() for value in values]

    # === Averaged weights ===

    @contextlib.contextmanager
    def averaged(self, model: keras.Model) -> Iterator[int]:
        """Puts the present average into a model, and in the end its own weights back.

        Args:
            model: The model that was trained, or one of the same weights.

        Yields:
            The number of iterates in the average; 1 if there is none yet.
        """
        weights, length = self.average.proposal(self._weights(model))
        with _swapped_weights(model, weights):
            yield length

    @contextlib.contextmanager
    def best(self, model: keras.Model) -> Iterator[float]:
        """Puts the weights of the best evaluation into a model, and in the end its own.

        Yields:
            Their loss.

        Raises:
            ValueError: If there was no evaluation.
        """
        if not self._best:
            raise ValueError(
                f"{type(self).__name__}.best: there was no evaluation with a finite "
                "loss."
            )
        with _swapped_weights(model, self._best):
            yield self.best_loss

    # === State ===

    def get_state(self) -> dict[str, Any]:
        """Returns the averages, the best weights and the evaluations."""
        return {
            "average": self.average.get_state(),
            "evaluations": self.evaluations,
            "best_loss": self.best_loss,
            "best": self._best,
            "pending": self._pending,
            "iterations": self._iterations,
        }

    def rewind(self, state: dict[str, Any]) -> None:
        """Takes over an earlier state in the midst of training.

        `DivergenceGuard` calls it, which has put earlier weights into the model. If a
        step is about to begin, its iterate counts; put this callback before the guard.
        """
        pending = self._pending
        self.set_state(state)
        self._pending = pending
        self._iterations = updates_done(self.model)

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over what `get_state` returned."""
        self.average.set_state(state["average"], self.on_device)
        self.evaluations = [dict(row) for row in state["evaluations"]]
        self.best_loss = state["best_loss"]
        self._best = list(state["best"])
        self._pending = state["pending"]
        self._iterations = state["iterations"]


@contextlib.contextmanager
def _swapped_weights(model: keras.Model, weights: Weights) -> Iterator[None]:
    """Puts weights into a model, and in the end its own back."""
    variables = model.trainable_variables
    raw = to_numpy([variable.value for variable in variables])
    try:
        _assign(variables, weights)
        yield
    finally:
        _assign(variables, raw)


def _assign(variables: Sequence[Any], weights: Weights) -> None:
    """Assigns weights of any floating dtype to variables."""
    for variable, weight in zip(variables, weights, strict=True):
        variable.assign(tf.cast(weight, variable.dtype))
