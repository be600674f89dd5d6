"""Trains one student so that a killed run goes on, and returns its best weights."""

from __future__ import annotations

import pathlib
from typing import Any

import keras

from rlm_tf.training import (
    ExactResume,
    KeepBest,
    MetricsLog,
    ResumableBatches,
    interruptible,
)

_CHECKPOINT_SECONDS = 60.0


def copy_of(model: keras.Model, seed: int, example: Any = None) -> keras.Model:
    """Returns a model of the same configuration and weights.

    Args:
        model: The model.
        seed: Of what layers without a seed of their own draw, such as dropout: copies
            of one seed draw alike.
        example: Inputs that a subclassed model is built on.

    Raises:
        ValueError: If Keras cannot make it from its configuration.
    """
    keras.utils.set_random_seed(seed)
    try:
        serialized = keras.saving.serialize_keras_object(model)
        copied = keras.saving.deserialize_keras_object(serialized)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise ValueError(
            f"distil: {type(model).__name__} {model.name!r} cannot be copied, and both "
            "trainings begin with a copy; a subclassed student needs "
            "`keras.saving.register_keras_serializable` and `get_config()`. Keras: "
            f"{str(error).splitlines()[0]}"
        ) from error
    if example is not None and not copied.built:
        copied(example, training=False)
    copied.set_weights(model.get_weights())
    return copied


def copy_of_optimizer(optimizer: keras.optimizers.Optimizer) -> Any:
    """Returns an optimiser of the same configuration."""
    return type(optimizer).from_config(optimizer.get_config())


def fit(
    model: keras.Model,
    data: ResumableBatches,
    valid: Any,
    epochs: int,
    folder: pathlib.Path | None,
    *,
    monitor: str,
    mode: str,
    further: list[Any],
    name: str,
    verbose: int,
) -> None:
    """Trains a compiled model, and leaves the weights of its best epoch in it.

    Args:
        model: The model.
        data: Training batches.
        valid: Validation data, as `fit()` takes them.
        epochs: Passes.
        folder: Of checkpoints; None: a killed run begins anew.
        monitor: What the best epoch is chosen by.
        mode: "min" or "max".
        further: Callbacks.
        name: What is trained, for what is printed.
        verbose: 1: some lines of progress are printed.
    """
    # Of few examples many epochs are equally accurate; later ones have learnt more.
    keep = KeepBest(monitor, mode, ties="last" if mode == "max" else "first")
    shown = [Progress(name, monitor, epochs)] if verbose else []
    options: dict[str, Any] = {
        "epochs": epochs,
        "validation_data": valid,
        "verbose": 0,
    }
    if folder is None:
        callbacks = [data.follow_epochs(), keep, *further, *shown]
        model.fit(data.dataset, shuffle=False, callbacks=callbacks, **options)
    else:
        log = MetricsLog(folder / "metrics.jsonl")
        saver = ExactResume(
            folder / "checkpoints",
            data,
            [keep, log, *further],
            every_seconds=_CHECKPOINT_SECONDS,
        )
        with interruptible(saver):
            model.fit(data.dataset, shuffle=False, callbacks=[saver, *shown], **options)
    keep.best.restore(model)


class Progress(keras.callbacks.Callback):
    """Prints a line now and then, ten in all.

    Args:
        name: What is trained.
        monitor: The log that is shown.
        epochs: Of the training.
    """

    def __init__(self, name: str, monitor: str, epochs: int) -> None:
        super().__init__()
        self._name = name
        self._monitor = monitor
        self._epochs = epochs

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        done, every = epoch + 1, max(self._epochs // 10, 1)
        if done % every == 0 or done == self._epochs:
            value = (logs or {}).get(self._monitor, float("nan"))
            print(
                f"{self._name}: epoch {done} of {self._epochs}, {self._monitor} "
                f"{value:.4g}",
                flush=True,
            )
