"""What `fit()` and `evaluate()` need to run in several processes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import plain_errors
from rlm_tf.workers import Workers, data_sharing, lost_worker_named


class WorkerModel(keras.Model):
    """A Keras model that `MultiWorkerMirroredStrategy` trains, too.

    In Keras 3.15 two places stand in the way of it: the model is built from an average
    of the replicas' first batches, and the logs of a step are averaged over workers by
    an operation that scalars do not have. Here the first local replica's batch is used,
    and logs are those of this worker's replicas; what `fit()` and `evaluate()` return
    comes from the metrics, which sum over all.
    """

    train_function: Callable[[Any], Any] | None
    test_function: Callable[[Any], Any] | None

    @property
    def _in_workers(self) -> bool:
        return Workers(self.distribute_strategy).are_several

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Configures training as `keras.Model.compile`.

        Raises:
            ValueError: If several workers are to compile by XLA, or to take several
                steps in one execution.
        """
        super().compile(*args, **kwargs)
        if not self._in_workers:
            return
        for name, given in (
            ("jit_compile=True", self.jit_compile),
            ("steps_per_execution", self.steps_per_execution > 1),
        ):
            if given:
                raise ValueError(
                    f"{type(self).__name__}: leave `{name}` out of `compile()` with "
                    "several workers."
                )

    def fit(self, x: Any = None, *args: Any, **kwargs: Any) -> keras.callbacks.History:
        """Trains as `keras.Model.fit`; workers share each batch of a data set.

        TensorFlow tunes a data set's threads and buffers only where its
        `options().autotune.enabled` is True: the end of an epoch waits for it.
        """
        given = keras_arguments("fit", x, *args, **kwargs)
        for name in ("x", "validation_data"):
            given[name] = self._batches(given.get(name))
        with plain_errors(), lost_worker_named():
            return super().fit(**given)

    def evaluate(self, x: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Evaluates as `keras.Model.evaluate`; workers share each batch."""
        with plain_errors(), lost_worker_named():
            return super().evaluate(self._batches(x), *args, **kwargs)

    def _batches(self, data: Any) -> Any:
        data = _without_tuning(data)
        return _shared_batches(data) if self._in_workers else data

    def make_train_function(self, force: bool = False) -> Any:
        if not self._in_workers:
            return super().make_train_function(force)
        if self.train_function is None or force:
            self.train_function = self._worker_function(self.train_step)
        return self.train_function

    def make_test_function(self, force: bool = False) -> Any:
        if not self._in_workers:
            return super().make_test_function(force)
        if self.test_function is None or force:
            self.test_function = self._worker_function(self.test_step)
        return self.test_function

    def _worker_function(self, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Returns what takes an iterator's next batch and gives this worker's logs."""
        strategy = self.distribute_strategy

        def local_mean(value: Any) -> tf.Tensor:
            return tf.reduce_mean(strategy.experimental_local_results(value), axis=0)

        def on_data(data: Any) -> Any:
            return tf.nest.map_structure(local_mean, strategy.run(step, args=(data,)))

        def on_iterator(iterator: Any) -> Any:
            return on_data(iterator.get_next())

        if not self.run_eagerly:
            on_data = tf.function(on_data, reduce_retracing=True, autograph=False)
            on_iterator = tf.function(
                on_iterator, reduce_retracing=True, autograph=False
            )
        on_data = self._autoconvert_optionals(on_data)

        def function(iterator: Any) -> Any:
            if isinstance(
                iterator, tf.data.Iterator | tf.distribute.DistributedIterator
            ):
                return on_iterator(iterator)
            return on_data(next(iterator))

        return function

    def _maybe_symbolic_build(self, iterator: Any = None, data_batch: Any = None):
        if iterator is not None and self._in_workers:
            local = self.distribute_strategy.experimental_local_results
            for _, _, batches in iterator:
                data_batch = tf.nest.map_structure(
                    lambda value: local(value)[0], next(batches)
                )
                break
            iterator = None
        super()._maybe_symbolic_build(iterator, data_batch)


def keras_arguments(method: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Returns the arguments of a method of `keras.Model` by their names.

    Raises:
        TypeError: If it does not take them.
    """
    signature = inspect.signature(getattr(keras.Model, method))
    named = dict(signature.bind(None, *args, **kwargs).arguments)
    del named["self"]
    others = named.pop("kwargs", {})
    return {**named, **others}


def _without_tuning(data: Any) -> Any:
    """Returns a data set that TensorFlow does not tune, unless it asks to be.

    The thread that tunes may miss that its iterator has ended, and the epoch then waits
    until it looks again, for as long as the iterator lived and for up to a minute.
    """
    if not isinstance(data, tf.data.Dataset):
        return data
    if data.options().autotune.enabled is not None:
        return data
    options = tf.data.Options()
    options.autotune.enabled = False
    return data.with_options(options)


def _shared_batches(data: Any) -> Any:
    """Returns a data set of which each worker takes its share of every batch.

    Files, which TensorFlow would share by itself where there are some, are few, and not
    in the order of one process.
    """
    if not isinstance(data, tf.data.Dataset):
        return data
    options = data.options()
    sharing = options.experimental_distribute
    if sharing.auto_shard_policy != tf.data.experimental.AutoShardPolicy.AUTO:
        return data
    return data.with_options(data_sharing())
