"""A tf.data pipeline whose next pass may start at any step of any epoch."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.data.batches.contiguous_batches import Transform
from rlm_tf.workers import data_sharing

# (epoch, start_step) -> the elements from that step on; both are int64 scalars.
DatasetFunction: TypeAlias = Callable[[tf.Tensor, tf.Tensor], tf.data.Dataset]


class Batches(Protocol):
    """What `contiguous_batches` returns, as far as it matters here."""

    steps: int

    def dataset(self) -> tf.data.Dataset:
        """Returns the elements of one pass."""


class ResumableBatches:
    """Elements of an epoch, in a fixed order, from a step that can be set.

    `fit()` makes a fresh iterator of its dataset in every epoch, after
    `on_epoch_begin`. The dataset of this class looks up epoch and first step in two
    variables at that moment, so a callback can make an epoch start in its middle
    (`ExactResume` does), and everything random in the data can be a function of a seed,
    the epoch and the step. Somebody has to set them: without `ExactResume`, give
    `follow_epochs()` to `fit(callbacks=...)`, or every epoch is epoch 0.

    Args:
        source: One of
            - an object with `dataset()` and `steps`, such as `ContiguousBatches`, or
              with `dataset(epoch, start_step)`, such as `VariableWindows`;
            - a `tf.data.Dataset` that gives the same elements in the same order in
              every pass (a resumed epoch computes and skips those before its step);
            - a function `(epoch, start_step) -> tf.data.Dataset`, which is traced
              once: for an order that differs between epochs.
        steps: Number of elements of an epoch; None asks `source`.
        transform: `(element, epoch, step) -> element`, traced; noising for example.
        passes: How many epochs of `source` are one of `dataset`. To begin an epoch
            takes a tenth of a second or more, which is much where it is of a few steps.

    Attributes:
        dataset: The `tf.data.Dataset` to give to `fit()` (with `shuffle=False`).
        steps: Number of its elements in an epoch.

    Raises:
        ValueError: If the number of steps or `passes` is unknown or not positive, or a
            distribution strategy's scope is active (its replicas would each get the two
            variables).
    """

    def __init__(
        self,
        source: Batches | tf.data.Dataset | DatasetFunction,
        *,
        steps: int | None = None,
        transform: Transform | None = None,
        passes: int = 1,
    ):
        if tf.distribute.has_strategy():
            raise ValueError(
                "ResumableBatches must be created outside `strategy.scope()`; fit() "
                "distributes its dataset."
            )
        self.source = source
        self.transform = transform
        self._elements = _as_function(source)
        self._steps = _count(source) if steps is None else steps
        if self._steps < 1:
            raise ValueError(
                "ResumableBatches: `steps` must be the number of elements of an epoch, "
                f">= 1; found {self._steps}. Give it where `source` does not know it."
            )
        check_integer(type(self).__name__, "passes", passes, 1)
        self.passes = passes
        self.steps = passes * self._steps
        with tf.device("CPU:0"):
            self._epoch = tf.Variable(0, dtype=tf.int64, trainable=False)
            self._start = tf.Variable(0, dtype=tf.int64, trainable=False)
        dataset = tf.data.Dataset.from_tensors(0).flat_map(self._one_epoch)
        options = data_sharing()
        # The end of an epoch would wait for what tunes: see `WorkerModel.fit()`.
        options.autotune.enabled = False
        self.dataset = dataset.prefetch(tf.data.AUTOTUNE).with_options(options)
        # Not `assert_cardinality`: it fails when a resumed epoch gives fewer elements.
        length = tf.constant(self.steps, tf.int64)
        self.dataset.cardinality = lambda: length

    def seek(self, epoch: int, start_step: int = 0) -> None:
        """Sets what the next iterator of `dataset` starts with.

        Raises:
            ValueError: If `epoch` is negative or `start_step` not in `[0, steps)`.
        """
        if epoch < 0 or not 0 <= start_step < self.steps:
            raise ValueError(
                f"ResumableBatches.seek: needs epoch >= 0 and start_step in "
                f"[0, {self.steps}), found {epoch} and {start_step}."
            )
        self._epoch.assign(epoch)
        self._start.assign(start_step)

    def follow_epochs(self) -> keras.callbacks.Callback:
        """Returns a callback that sets the epoch; `ExactResume` needs no such help."""
        return keras.callbacks.LambdaCallback(
            on_epoch_begin=lambda epoch, logs: self.seek(epoch)
        )

    def _one_epoch(self, _: tf.Tensor) -> tf.data.Dataset:
        epoch, start = self._epoch.read_value(), self._start.read_value()
        if self.passes == 1:
            return self._one_pass(epoch, start)
        first = start // self._steps

        def one(number: tf.Tensor) -> tf.data.Dataset:
            own = tf.where(number == first, start % self._steps, tf.zeros_like(start))
            return self._one_pass(epoch * self.passes + number, own)

        return tf.data.Dataset.range(first, self.passes).flat_map(one)

    def _one_pass(self, epoch: tf.Tensor, start: tf.Tensor) -> tf.data.Dataset:
        elements = self._elements(epoch, start)
        if self.transform is None:
            return elements
        transform = self.transform
        counted = tf.data.Dataset.zip(
            elements, tf.data.Dataset.range(start, self._steps)
        )
        return counted.map(
            lambda element, step: transform(element, epoch, step),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )


def _as_function(source: Any) -> DatasetFunction:
    if hasattr(source, "dataset"):
        parameters = list(inspect.signature(source.dataset).parameters)
        if parameters[:2] == ["epoch", "start_step"]:
            return source.dataset
        source = source.dataset()
    if isinstance(source, tf.data.Dataset):
        return lambda epoch, start: source.skip(start)
    return source


def _count(source: Any) -> int:
    if hasattr(source, "steps"):
        return int(source.steps)
    if isinstance(source, tf.data.Dataset):
        return int(source.cardinality())
    return 0
