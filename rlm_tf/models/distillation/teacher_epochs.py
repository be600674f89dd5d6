"""What teachers for students share: two terms, a weight that rises, memories."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_option, check_range
from rlm_tf.gradients import ordered_sum
from rlm_tf.objective_model.term import TermLoss, TermSpec
from rlm_tf.objective_model.worker_model import keras_arguments
from rlm_tf.objectives.lipschitz import Norm
from rlm_tf.training.ramp import ramp

RAMPS = ("linear", "cosine", "cyclic", "piecewise")


class TeacherEpochs:
    """Of teachers: their two terms, and memories whose epochs end.

    A class that has this before its model calls `take_options` in its constructor, and
    has `_constants`.
    """

    lipschitz: float
    consistency: float
    ramp: str
    epochs: int

    def take_options(
        self,
        *,
        lipschitz: float,
        consistency: float,
        ramp: str,
        epochs: int,
        norm: Norm,
        ignore: Collection[str],
        variant: Literal["thesis", "authors"],
        **memories: Any,
    ) -> None:
        """Checks and keeps the options of the terms, and what remembers by its name.

        Raises:
            ValueError: If one is out of range, the variant of a memory is another, or a
                layer has no known constant.
        """
        name = type(self).__name__
        check_range(name, 0.0, 1e30, lipschitz=lipschitz, consistency=consistency)
        check_option(name, "ramp", ramp, RAMPS)
        check_option(name, "norm", norm, ("one", "inf"))
        check_option(name, "variant", variant, ("thesis", "authors"))
        check_integer(name, "epochs", epochs, 1)
        for memory, own in memories.items():
            if own is not None and own.variant != variant:
                raise ValueError(
                    f"{name}: `{memory}` has variant {own.variant!r}, expected "
                    f"{variant!r}, as the teacher."
                )
            setattr(self, memory, own)
        self.lipschitz = lipschitz
        self.consistency = consistency
        self.ramp = ramp
        self.epochs = epochs
        self.norm = norm
        self.ignore = tuple(ignore)
        self.variant = variant
        # No weights: the rise, and the epoch that is going on.
        self.rise = tf.Variable(0.0, trainable=False)
        self.epoch = tf.Variable(-1, trainable=False, dtype=tf.int64)
        if lipschitz:
            self._constants()

    def options(self) -> dict[str, Any]:
        """Returns what `take_options` has kept, for a config, without memories."""
        return {
            "lipschitz": self.lipschitz,
            "consistency": self.consistency,
            "ramp": self.ramp,
            "epochs": self.epochs,
            "norm": self.norm,
            "ignore": list(self.ignore),
            "variant": self.variant,
        }

    def teaching_specs(self) -> list[TermSpec]:
        """Returns the terms `lipschitz` and `consistency`, where they count."""
        specs = []
        if self.lipschitz:
            specs.append(TermSpec("lipschitz", self.lipschitz, evaluated=False))
        if self.consistency:
            specs.append(
                TermSpec(
                    "consistency", self.consistency, switch=self.rise, evaluated=False
                )
            )
        return specs

    def lipschitz_term(self) -> TermLoss:
        """Returns the sum of the layers' constants."""
        return of_weights(ordered_sum(list(self._constants().values())))

    def _constants(self) -> dict[str, tf.Tensor]:
        """Returns the constant of each layer, a scalar."""
        raise NotImplementedError

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


def of_weights(total: tf.Tensor) -> TermLoss:
    """Returns the term of a sum over weights; of each replica the same, as its mean."""
    return TermLoss(total[tf.newaxis], tf.ones([1]))


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
