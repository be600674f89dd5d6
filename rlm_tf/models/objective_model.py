"""The Keras model whose loss is a weighted sum of named terms."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.models import gradients as gradient_lists
from rlm_tf.models.term import Gradient, Term


class ObjectiveModel(keras.Model):
    """Base class: a custom `train_step` and `test_step` over named loss terms.

    A subclass returns its terms from `objective_terms`. This class is the only place of
    the library that reduces losses over batch and replicas:
    `value = sum(loss * weights) / sum(weights)`, both sums over all replicas, so that
    for equal draws R replicas take the step that one device takes. Keras optimisers sum
    gradients over replicas, which a bare mean per replica would multiply by R.

    Terms with a `clip_norm` are differentiated on their own and clipped before their
    coefficient multiplies them and before gradients are added; without any, there is
    one backward pass. Clipping happens after the sum over replicas: `global_clipnorm`
    of a Keras optimiser clips each replica's share, which is something else.

    Every term has a metric of its name (nats, weighted mean). `loss` is the total,
    averaged over steps with the first term's weights.

    Args:
        term_names: Names of all terms that `objective_terms` may return, in order.
        clip_norm: The gradient of the total is clipped to this global norm; None: not.
        loss_scale: Multiplies the total loss, not the metrics. With the window length
            T it makes a per-token mean the "sum over time, mean over batch" to which
            published learning rates and clipping norms of recurrent models refer.
        **kwargs: Passed to `keras.Model`.

    Raises:
        ValueError: If `clip_norm` or `loss_scale` is not positive.
    """

    def __init__(
        self,
        *,
        term_names: tuple[str, ...],
        clip_norm: float | None = None,
        loss_scale: float = 1.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if clip_norm is not None and not clip_norm > 0:
            raise ValueError(
                f"{type(self).__name__}: `clip_norm` must be positive or None, found "
                f"{clip_norm}."
            )
        if not loss_scale > 0:
            raise ValueError(
                f"{type(self).__name__}: `loss_scale` must be positive, found "
                f"{loss_scale}."
            )
        self.clip_norm = clip_norm
        self.loss_scale = loss_scale
        self.total_metric = keras.metrics.Mean(name="loss")
        self.term_metrics = {name: self.make_term_metrics(name) for name in term_names}

    # === Objective ===

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> list[Term]:
        """Returns the terms of one batch; called once a step, on each replica."""
        raise NotImplementedError(
            f"{type(self).__name__} must override `objective_terms`."
        )

    def make_term_metrics(self, name: str) -> list[keras.metrics.Metric]:
        """Returns the metrics that are updated with a term's loss and weights."""
        return [keras.metrics.Mean(name=name)]

    # === Steps ===

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        variables = self.trainable_variables
        unit = self.optimizer.scale_loss(tf.constant(1.0))
        scale = unit * self.loss_scale
        with tf.GradientTape(persistent=True) as tape:
            terms = self.objective_terms(x, y, sample_weight, training=True)
            # Before replicas meet: the list of losses is shared by their threads.
            extra = self._extra_losses()
            reductions = [_Reduction(term) for term in terms]
            values = [reduction.local_value() for reduction in reductions]
            joint = [
                scale * tf.cast(term.coefficient, value.dtype) * value
                for term, value in zip(terms, values, strict=True)
                if not term.is_separate
            ]
            total = None if extra is None else scale * extra
            for value in joint:
                total = value if total is None else total + value
            separate = [scale * value for value in values]
        gradients: list[Gradient] = [None] * len(variables)
        if total is not None:
            gradients = self._deduplicated(tape.gradient(total, variables))
        reduced = False
        for term, reduction, value in zip(terms, reductions, separate, strict=True):
            if not term.is_separate:
                continue
            if term.gradient_fn is None:
                own = tape.gradient(value, variables)
            else:
                own = term.gradient_fn(variables, scale * reduction.scale())
            own = self._deduplicated(own)
            if term.clip_norm is not None:
                if not reduced:
                    gradients = gradient_lists.sum_over_replicas(gradients)
                    reduced = True
                own = _clip(
                    gradient_lists.sum_over_replicas(own),
                    unit * term.clip_norm,
                )
            elif reduced:
                own = gradient_lists.sum_over_replicas(own)
            if term.variable_factor is not None:
                own = [
                    gradient_lists.scale([g], term.variable_factor(v))[0]
                    for g, v in zip(own, variables, strict=True)
                ]
            own = gradient_lists.scale(own, term.coefficient)
            gradients = gradient_lists.add(gradients, own)
        del tape
        if self.clip_norm is not None:
            if not reduced:
                gradients = gradient_lists.sum_over_replicas(gradients)
                reduced = True
            gradients = _clip(gradients, unit * self.clip_norm)
        if reduced:
            # The optimiser is going to add up what every replica passes.
            gradients = gradient_lists.scale(gradients, 1.0 / _num_replicas())
        self.optimizer.apply(gradients, variables)
        return self._update_metrics(terms, reductions, extra)

    def test_step(self, data: Any) -> dict[str, Any]:
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        terms = self.objective_terms(x, y, sample_weight, training=False)
        extra = self._extra_losses()
        reductions = [_Reduction(term) for term in terms]
        return self._update_metrics(terms, reductions, extra)

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        own = [self.total_metric]
        for metrics in self.term_metrics.values():
            own.extend(metrics)
        # Keras counts these too, and a tracker called `loss` of its own.
        known = {metric.name for metric in own}
        return own + [m for m in super().metrics if m.name not in known]

    # === Parts ===

    def _deduplicated(self, gradients: list[Gradient]) -> list[Gradient]:
        return [gradient_lists.deduplicate(gradient) for gradient in gradients]

    def _extra_losses(self) -> tf.Tensor | None:
        """Returns this replica's share of `self.losses`, or None."""
        if not self.losses:
            return None
        losses = [tf.cast(loss, tf.float32) for loss in self.losses]
        return tf.add_n(losses) / _num_replicas()

    def _update_metrics(
        self, terms: list[Term], reductions: list[_Reduction], extra: tf.Tensor | None
    ) -> dict[str, Any]:
        total = tf.constant(0.0) if extra is None else extra
        for term, reduction in zip(terms, reductions, strict=True):
            value = tf.cast(reduction.local_value(), tf.float32)
            total += tf.cast(term.coefficient, tf.float32) * value
            for metric in self.term_metrics[term.name]:
                metric.update_state(reduction.loss, sample_weight=reduction.weights)
        total = _all_reduce(total)
        self.total_metric.update_state(
            total, sample_weight=tf.reduce_sum(reductions[0].weights)
        )
        return self.get_metrics_result()

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.update(clip_norm=self.clip_norm, loss_scale=self.loss_scale)
        return config


class _Reduction:
    """The global weighted mean of one term, split over replicas."""

    def __init__(self, term: Term):
        loss = term.loss
        loss = loss if loss.dtype == tf.float64 else tf.cast(loss, tf.float32)
        if term.weights is None:
            self.weights = tf.ones_like(loss)
        else:
            self.weights = tf.cast(term.weights, loss.dtype)
        if not loss.shape.is_compatible_with(self.weights.shape):
            raise ValueError(
                f"Term `{term.name}`: `weights` must have the shape of `loss`, "
                f"{loss.shape}, found {self.weights.shape}."
            )
        # A position that does not count may hold anything, infinity included.
        self.loss = tf.where(self.weights > 0, loss, tf.zeros_like(loss))
        self.total = _all_reduce(tf.reduce_sum(self.weights))

    def local_value(self) -> tf.Tensor:
        value = tf.reduce_sum(self.loss * self.weights)
        return tf.math.divide_no_nan(value, self.total)

    def scale(self) -> tf.Tensor:
        return tf.math.divide_no_nan(self.weights, self.total)


def _clip(gradients: list[Gradient], clip_norm: tf.Tensor) -> list[Gradient]:
    norm = gradient_lists.global_norm(gradients)
    return gradient_lists.scale(gradients, gradient_lists.clip_factor(norm, clip_norm))


def _num_replicas() -> int:
    context = tf.distribute.get_replica_context()
    return 1 if context is None else context.num_replicas_in_sync


def _all_reduce(value: tf.Tensor) -> tf.Tensor:
    if _num_replicas() == 1:
        return value
    context = tf.distribute.get_replica_context()
    return context.all_reduce(tf.distribute.ReduceOp.SUM, value)
