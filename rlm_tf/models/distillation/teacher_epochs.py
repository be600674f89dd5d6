"""What rises over the epochs of a teacher's training, and what remembers them."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.objective_model.worker_model import keras_arguments
from rlm_tf.training.ramp import ramp

RAMPS = ("linear", "cosine", "cyclic", "piecewise")


class TeacherEpochs:
    """Of teachers: a weight that rises, and memories whose epochs end.

    A class that has this before its model has attributes `ramp` and `epochs`, and
    calls `begin_epochs` in its constructor.
    """

    ramp: str
    epochs: int

    def begin_epochs(self) -> None:
        """Creates what is not a weight: the rise, and the epoch that is going on."""
        self.rise = tf.Variable(0.0, trainable=False)
        self.epoch = tf.Variable(-1, trainable=False, dtype=tf.int64)

    @property
    def memories(self) -> list[Any]:
        """What remembers epochs: has `end_epoch()`, and perhaps `resume()`."""
        return []

    def fit(self, x: Any = None, *args: Any, **kwargs: Any) -> keras.callbacks.History:
        """Trains as `keras.Model.fit`, and ends the epochs of what remembers them."""
        given = keras_arguments("fit", x, *args, **kwargs)
        # Behind those that go on from a checkpoint.
        given["callbacks"] = [*(given.get("callbacks") or []), _Epochs()]
        return super().fit(**given)  # type: ignore[misc]


class _Epochs(keras.callbacks.Callback):
    """Ends the epochs of a teacher's memories, and sets what its weight is.

    An epoch ends where the next one begins: what a checkpoint holds is then whole,
    wherever it is written.
    """

    def __init__(self) -> None:
        super().__init__()
        self._begun = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        teacher = self.model
        if not self._begun:
            # By now the checkpoint is there.
            for memory in teacher.memories:
                if hasattr(memory, "resume"):
                    memory.resume()
        self._begun = True
        before = int(teacher.epoch.numpy())
        if before >= 0 and before != epoch:
            _end_epoch(teacher)
        teacher.epoch.assign(epoch)
        done = min(epoch + 1, teacher.epochs)
        teacher.rise.assign(ramp(teacher.ramp, done, teacher.epochs))

    def on_train_end(self, logs: Any = None) -> None:
        teacher = self.model
        _end_epoch(teacher)
        teacher.epoch.assign(-1)


def _end_epoch(teacher: Any) -> None:
    for memory in teacher.memories:
        memory.end_epoch()
