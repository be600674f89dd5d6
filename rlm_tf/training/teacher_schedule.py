"""A teacher that a student follows through its own training (RCO)."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import Any

import keras

from rlm_tf.checks import check_integer


class SaveAnchors(keras.callbacks.Callback):
    """Saves the weights of a teacher now and then while it is trained.

    Args:
        folder: Of the files, `anchor-0010.weights.h5` after epoch 10. Each is written
            beside and renamed.
        every: Epochs between them; the last epoch has one, too.
        model: Whose weights; None: of the model that is trained. Of a
            `StudentOrientedTeacher` give its `.model`.

    Raises:
        ValueError: If `every` is not positive.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        every: int = 10,
        *,
        model: keras.Model | None = None,
    ) -> None:
        super().__init__()
        check_integer(type(self).__name__, "every", every, 1)
        self.folder = pathlib.Path(folder)
        self.every = every
        self._of = model

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        done = epoch + 1
        if done % self.every and done != self.params["epochs"]:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"anchor-{done:04d}.weights.h5"
        part = self.folder / f"part-{done:04d}.weights.h5"
        (self._of or self.model).save_weights(part)
        os.replace(part, path)


class TeacherSchedule(keras.callbacks.Callback):
    """Route-constrained optimisation (Jin et al. 2019): a teacher at its stages.

    A student learns from one anchor of its teacher after the other, each for as many
    epochs: of n anchors and E epochs the one of number `floor(e n / E)` in epoch e. A
    resumed run has the anchor of its epoch.

    Args:
        teacher: A `rlm_tf.models.Distillation`'s teacher; its weights are replaced.
        anchors: Weight files in the order in which they teach, those of `SaveAnchors`.
            Or the folder of these.
        epochs: E.

    Raises:
        ValueError: If there is no anchor, or there are more than epochs.
    """

    def __init__(
        self,
        teacher: keras.Model,
        anchors: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        epochs: int,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        check_integer(name, "epochs", epochs, 1)
        if isinstance(anchors, str | os.PathLike):
            folder = pathlib.Path(anchors)
            anchors = sorted(folder.glob("anchor-*.weights.h5"))
            if not anchors:
                raise ValueError(
                    f"{name}: {folder} has no anchor-*.weights.h5; `SaveAnchors` makes "
                    "them."
                )
        self.anchors = [pathlib.Path(anchor) for anchor in anchors]
        if not 0 < len(self.anchors) <= epochs:
            raise ValueError(
                f"{name}: `anchors` must be between 1 and as many as epochs, "
                f"{epochs}, found {len(self.anchors)}."
            )
        self.teacher = teacher
        self.epochs = epochs
        self.number = -1

    def set_model(self, model: keras.Model) -> None:
        super().set_model(model)
        if hasattr(model, "teacher_changes"):
            # A resumed run begins with other weights than those it goes on with.
            model.teacher_changes = True

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        count = len(self.anchors)
        number = min(epoch * count // self.epochs, count - 1)
        if number != self.number:
            self.teacher.load_weights(self.anchors[number])
            self.number = number
