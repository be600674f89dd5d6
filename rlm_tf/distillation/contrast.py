"""A strategy that remembers what examples were like."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import (
    check_integer,
    check_range,
    check_running,
    checked_ids,
)
from rlm_tf.distillation.regressor import Shape, projection
from rlm_tf.distillation.strategy import Strategy
from rlm_tf.objectives.divergences import unit
from rlm_tf.objectives.feature_relations import contrast_of_products
from rlm_tf.replicas import own_part
from rlm_tf.typing import LossOutput

# Inner products that take as long as reading one vector from a memory, about.
_PRODUCTS_A_GATHER = 8


@keras.saving.register_keras_serializable("rlm_tf")
class ContrastiveRepresentation(Strategy):
    """CRD (Tian, Krishnan and Isola 2020); see
    `objectives.feature_distillation.contrastive`.

    Two projections to vectors of length 1 are trained. What they gave of each example
    is remembered, as a mean that forgets; the student's vector is to be told from those
    that the teacher had of examples of other classes, and the other way round. The
    normalisers are those of the first batch.

    Needs labels and ids of the batch, and the labels of all examples. The memories are
    no part of `.keras` files; checkpoints of `ExactResume` have them. Negatives are
    drawn with replacement.

    Args:
        teacher_layer_name: See `Strategy`.
        student_layer_name: See `Strategy`.
        num_examples: N; ids are below it.
        labels: Int `[N]`, of all examples. None: as loaded from a file; `set_labels()`
            before fit().
        width: Of both projections.
        negatives: K, of an example.
        temperature: tau.
        momentum: What is kept of a memory when its example is seen.
        seed: Of memories and negatives.
        **kwargs: Of `keras.Layer`.

    Raises:
        ValueError: If a number is out of range, or labels do not fit.
    """

    needs = ("labels", "ids")
    across = True

    def __init__(
        self,
        teacher_layer_name: str | None = None,
        student_layer_name: str | None = None,
        *,
        num_examples: int,
        labels: npt.ArrayLike | None = None,
        width: int = 128,
        negatives: int = 16_384,
        temperature: float = 0.07,
        momentum: float = 0.5,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(teacher_layer_name, student_layer_name, **kwargs)
        name = type(self).__name__
        check_integer(name, "num_examples", num_examples, 2)
        check_integer(name, "width", width, 1)
        check_integer(name, "negatives", negatives, 1)
        check_integer(name, "seed", seed, 0)
        check_range(name, 1e-30, 1e30, temperature=temperature)
        check_range(name, 0.0, 1.0, momentum=momentum)
        self.num_examples = num_examples
        self.width = width
        self.negatives = negatives
        self.temperature = temperature
        self.momentum = momentum
        self.seed = seed
        # By class: examples in that order, where each class begins, and how many.
        self._by_class: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self.labels = None
        if labels is not None:
            self.set_labels(labels)

    def set_labels(self, labels: npt.ArrayLike) -> None:
        """Tells the labels of all examples.

        Raises:
            ValueError: If they are not N integers from 0 on, or of one class.
        """
        found = np.asarray(labels)
        if found.shape != (self.num_examples,) or not (
            np.issubdtype(found.dtype, np.integer) and found.min() >= 0
        ):
            raise ValueError(
                f"{type(self).__name__}: `labels` must be {self.num_examples} integers "
                f"from 0 on, found {found.dtype} of shape {found.shape}."
            )
        counts = np.bincount(found)
        if counts.max() == self.num_examples:
            raise ValueError(
                f"{type(self).__name__}: `labels` must be of several classes: "
                "negatives are of others."
            )
        order = np.argsort(found, kind="stable")
        self._labels = found.astype(np.int64)
        self._by_class = (order, np.cumsum(counts) - counts, counts)

    def build(self, teacher_shape: Shape, student_shape: Shape) -> None:
        self.of_teacher = projection("of_teacher", teacher_shape, self.width)
        self.of_student = projection("of_student", student_shape, self.width)
        most = np.sqrt(3 / self.width)
        self.teacher_memory, self.student_memory = (
            self._variable(
                tf.random.stateless_uniform(
                    [self.num_examples, self.width], [self.seed, place], -most, most
                )
            )
            for place in (1, 2)
        )
        # 0: of no batch yet.
        self.normalisers = self._variable(tf.zeros([2]))
        self.step = self._variable(tf.zeros([], tf.int64))
        self.built = True

    def losses_of(
        self, teacher: Any, student: Any, training: bool = True, **context: Any
    ) -> LossOutput:
        name, labels, ids = type(self).__name__, context["labels"], context["ids"]
        if self._by_class is None:
            raise ValueError(
                f"{name}: no labels of all examples. A loaded strategy has none: "
                "`set_labels()` before fit()."
            )
        ids, labels = self._checked(name, ids, labels)
        others = self._others(labels)
        t = unit(self.of_teacher(tf.stop_gradient(teacher)), axis=1)
        s = unit(self.of_student(student), axis=1)
        sides = (
            (s, own_part(self.teacher_memory), t),
            (t, own_part(self.student_memory), s),
        )
        loss = tf.zeros([])
        for place, (anchors, memory, _) in enumerate(sides):
            near = tf.reduce_sum(anchors * tf.gather(memory, ids), axis=1)
            far = self._products(anchors, memory, others)
            loss += contrast_of_products(
                near,
                far,
                num_examples=self.num_examples,
                normaliser=self._normaliser(place, near, far),
                temperature=self.temperature,
            )
        if training:
            for _, memory, seen in sides:
                kept = self.momentum * tf.gather(memory, ids)
                kept += (1 - self.momentum) * tf.stop_gradient(seen)
                memory.scatter_update(tf.IndexedSlices(unit(kept, axis=1), ids))
            own_part(self.step).assign_add(1)
        return LossOutput(loss, None)

    def _checked(
        self, name: str, ids: tf.Tensor, labels: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns ids and labels, which must be those of this data."""
        assert self._by_class is not None
        ids, labels = checked_ids(name, "ids", ids), checked_ids(name, "labels", labels)
        ids, labels = tf.cast(ids, tf.int64), tf.cast(labels, tf.int64)
        outside = (ids < 0) | (ids >= self.num_examples)
        known = check_running(
            tf.logical_not(tf.reduce_any(outside)),
            f"{name}: ids must be in [0, {self.num_examples})",
            tf.reduce_max(tf.where(outside, tf.abs(ids), 0)),
        )
        with tf.control_dependencies(known):
            ids = tf.identity(ids)
        own = tf.gather(tf.constant(self._labels), ids)
        known = check_running(
            tf.reduce_all(own == labels),
            f"{name}: labels of a batch must be those of its ids in `labels`; the "
            "number of unlike ones must be 0",
            tf.math.count_nonzero(own != labels),
        )
        with tf.control_dependencies(known):
            return tf.identity(ids), tf.identity(labels)

    def _others(self, labels: tf.Tensor) -> tf.Tensor:
        """Returns examples of other classes `[B, K]`."""
        assert self._by_class is not None
        order, starts, counts = map(tf.constant, self._by_class)
        step = tf.convert_to_tensor(own_part(self.step))
        draws = tf.random.stateless_uniform(
            [tf.shape(labels)[0], self.negatives],
            tf.stack([tf.cast(self.seed, tf.int64), step + 3]),
            dtype=tf.float64,
        )
        own = tf.gather(counts, labels)[:, tf.newaxis]
        number = tf.cast(self.num_examples - own, tf.float64)
        places = tf.cast(draws * number, tf.int64)
        # Those of the class itself are passed over.
        behind = places >= tf.gather(starts, labels)[:, tf.newaxis]
        return tf.gather(order, places + tf.where(behind, own, tf.zeros_like(own)))

    def _products(
        self, anchors: tf.Tensor, memory: tf.Tensor, others: tf.Tensor
    ) -> tf.Tensor:
        """Returns inner products `[B, K]` with memories of others."""
        if self.num_examples <= _PRODUCTS_A_GATHER * self.negatives:
            # With all memories, in one product: to read vectors one by one costs more.
            products = tf.matmul(anchors, memory, transpose_b=True)
            return tf.gather(products, others, batch_dims=1)
        return tf.linalg.matvec(tf.gather(memory, others), anchors)

    def _normaliser(self, place: int, near: tf.Tensor, far: tf.Tensor) -> tf.Tensor:
        """Returns N times the mean of what is normalised, of the first batch."""
        variable = own_part(self.normalisers)
        scores = tf.concat([near[:, tf.newaxis], far], axis=1)
        mean = tf.reduce_mean(tf.exp(scores / self.temperature))
        first = tf.stop_gradient(mean) * self.num_examples
        found = tf.convert_to_tensor(variable)[place]
        found = tf.where(found > 0, found, tf.cast(first, found.dtype))
        whole = tf.tensor_scatter_nd_update(
            tf.convert_to_tensor(variable), [[place]], [found]
        )
        variable.assign(whole)
        return found

    def _variable(self, value: tf.Tensor) -> tf.Variable:
        """Returns a variable of which every replica has its own, with equal values."""
        return tf.Variable(
            value,
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_examples": self.num_examples,
            # Never part of a file.
            "labels": None,
            "width": self.width,
            "negatives": self.negatives,
            "temperature": self.temperature,
            "momentum": self.momentum,
            "seed": self.seed,
        }
