"""Induced model matching for classifiers of feature vectors and images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_ids, check_running, check_shapes
from rlm_tf.metrics.declared import declared
from rlm_tf.models.given_logits import no_probabilities
from rlm_tf.models.language.batch import without_last_axis
from rlm_tf.objective_model.objective_model import ObjectiveModel
from rlm_tf.objective_model.term import (
    Coefficient,
    TermLoss,
    TermSpec,
    check_coefficient,
    coefficient_at,
)
from rlm_tf.objectives.imm import induced_cross_entropy
from rlm_tf.objectives.neighbors import neighbor_log_weights
from rlm_tf.replicas import gather_rows
from rlm_tf.restricted import FeatureModel
from rlm_tf.typing import TensorLike


class NeighborMatching(ObjectiveModel):
    """Trains a classifier whose induced model matches one that sees few features.

    The short context of an example is some of its features, the extended context the
    rest. Extended contexts of the *neighbours* stand in for those that occur with a
    short context, weighted by how close their own short contexts are, Eq. (2):

        Q_hat(y | sh(x)) = sum_i w_i(x) Q(y | sh(x), ex(x_i)),
        w_i(x) ~ exp(-alpha |sh(x_i) - sh(x)|)

    and the objective is `(1 - r) CE + r IMM`, means over examples. With
    `lambda = r / (1 - r)` it is `CE + lambda IMM` at a learning rate divided by
    `1 + lambda`; see `coefficient_from_ratio`.

    `fit()` takes `(x [B, ...], y int [B])`, optionally with weights `[B]`; a label that
    is no class is an error (under XLA, a loss of nan). Neighbours are the examples of
    the batch, of all replicas and in proportion to their weights, itself included, or,
    after `set_neighbors`, a fixed set, which files do not hold.

    Source: section 1.1 and appendix D.1 of Muneeb and Ohannessian, arXiv 2402.12513.

    Args:
        restricted_model: P_hat, of labels given the short features; None: plain
            training.
        short_features: Which features are the short context: indices into a flattened
            example, in the order in which `restricted_model` takes them.
        ratio: r, in [0, 1], or a schedule over steps.
        inverse_bandwidth: alpha, not negative.
        **kwargs: See `ObjectiveModel`.

    Raises:
        ValueError: If an argument is out of range or the restricted model takes another
            number of features.
    """

    def __init__(
        self,
        restricted_model: FeatureModel | None,
        short_features: Sequence[int] = (0,),
        *,
        ratio: Coefficient = 0.5,
        inverse_bandwidth: float = 1.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        name = type(self).__name__
        self.short_features = [int(index) for index in short_features]
        if not self.short_features or min(self.short_features) < 0:
            raise ValueError(
                f"{name}: `short_features` must be some indices, found "
                f"{self.short_features}."
            )
        if len(set(self.short_features)) < len(self.short_features):
            raise ValueError(
                f"{name}: `short_features` must differ, found {self.short_features}."
            )
        if not isinstance(restricted_model, FeatureModel | None):
            raise ValueError(
                f"{name}: `restricted_model` must be a FeatureModel or None, found "
                f"{type(restricted_model).__name__}."
            )
        check_coefficient(name, "ratio", ratio, 1.0)
        if not 0 <= inverse_bandwidth < np.inf:
            raise ValueError(
                f"{name}: `inverse_bandwidth` must be finite and not negative, found "
                f"{inverse_bandwidth}."
            )
        wanted = getattr(restricted_model, "num_features", len(self.short_features))
        if wanted != len(self.short_features):
            raise ValueError(
                f"{name}: `restricted_model` takes {wanted} features, `short_features` "
                f"names {len(self.short_features)}."
            )
        self.restricted_model = restricted_model
        self.ratio = ratio
        self.inverse_bandwidth = inverse_bandwidth
        self.accuracy_metric = declared(keras.metrics.Mean(name="accuracy"), "up")
        self._neighbors: tf.Tensor | None = None

    def set_neighbors(self, neighbors: npt.ArrayLike | None) -> None:
        """Takes extended contexts from these examples `[K, ...]`; None: the batch's.

        Call it before `fit`: a step that was traced keeps what it was traced with.
        """
        if neighbors is None:
            self._neighbors = None
            return
        self._neighbors = tf.constant(np.asarray(neighbors, np.float32))

    # === Model ===

    @property
    def example_shape(self) -> tuple[int, ...]:
        """The shape of one example; subclasses implement it."""
        raise NotImplementedError(f"{type(self).__name__} has no `example_shape`.")

    def class_log_probs(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        """Returns log-probabilities of classes `[B, V]`; subclasses implement it."""
        raise NotImplementedError(
            f"{type(self).__name__} must override `class_log_probs`."
        )

    def sample_log_probs(
        self, x: tf.Tensor, neighbors: tf.Tensor, training: bool
    ) -> tf.Tensor:
        """Returns `log Q(y | sh(x_b), ex(neighbor_k))`, `[K, B, V]`.

        Args:
            x: `[B, ...]`, which gives the short features.
            neighbors: `[K, ...]`, which give all others.
            training: Whether dropout and the like are on.
        """
        flat = tf.reshape(neighbors, [tf.shape(neighbors)[0], 1, -1])
        size = int(np.prod(x.shape[1:]))
        short = np.isin(np.arange(size), self.short_features)
        own = tf.reshape(x, [1, -1, size])
        mixed = tf.where(tf.constant(short), own, tf.cast(flat, x.dtype))
        count = tf.shape(mixed)[0] * tf.shape(mixed)[1]
        examples = tf.reshape(mixed, tf.concat([[count], tf.shape(x)[1:]], axis=0))
        examples = tf.ensure_shape(examples, [None, *x.shape[1:]])
        log_probs = self.class_log_probs(examples, training)
        return tf.reshape(
            log_probs, [tf.shape(mixed)[0], tf.shape(mixed)[1], log_probs.shape[-1]]
        )

    # === Objective ===

    @property
    def term_specs(self) -> list[TermSpec]:
        if self.restricted_model is None:
            return [TermSpec("cross_entropy")]
        return [
            TermSpec("cross_entropy", lambda s: 1.0 - coefficient_at(self.ratio, s)),
            TermSpec("imm", self.ratio),
        ]

    @property
    def frozen_models(self) -> list[keras.layers.Layer]:
        return [] if self.restricted_model is None else [self.restricted_model]

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> dict[str, TermLoss]:
        x, labels, weights = self._checked(x, y, sample_weight)
        log_probs = self.class_log_probs(x, training)
        known = (labels >= 0) & (labels < tf.shape(log_probs)[1])
        # XLA leaves checks out: there, the loss becomes nan.
        check_running(
            tf.reduce_all(known),
            f"{type(self).__name__}: labels must be in [0, {log_probs.shape[1]})",
            tf.reduce_max(tf.where(known, tf.reduce_min(labels), labels)),
        )
        loss = -tf.gather(log_probs, tf.where(known, labels, 0), batch_dims=1)
        loss = tf.where(known, loss, tf.constant(np.nan, loss.dtype))
        weights = tf.cast(weights, loss.dtype)
        guesses = tf.argmax(log_probs, axis=-1, output_type=tf.int32)
        self.accuracy_metric.update_state(
            tf.cast(guesses == labels, tf.float32), sample_weight=weights
        )
        terms = {"cross_entropy": TermLoss(loss, weights)}
        if self.restricted_model is not None:
            induced = self._induced_loss(x, weights, training)
            terms["imm"] = TermLoss(induced, weights)
        return terms

    def _checked(
        self, x: Any, y: Any, sample_weight: Any
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns examples, labels `[B]` and weights `[B]`; `[B, 1]` will do."""
        name = type(self).__name__
        x = tf.cast(x, tf.float32)
        if not x.shape[1:].is_compatible_with(self.example_shape):
            raise ValueError(
                f"{name}: examples must have shape {list(self.example_shape)}, found "
                f"{x.shape[1:].as_list()}."
            )
        check_ids(name, y=y)
        labels = without_last_axis(tf.cast(y, tf.int32))
        weights = tf.ones_like(labels, tf.float32)
        if sample_weight is not None:
            weights = without_last_axis(tf.cast(sample_weight, tf.float32))
        check_shapes(name, y=(labels, "B"), sample_weight=(weights, "B"))
        return x, labels, weights

    def _induced_loss(
        self, x: tf.Tensor, weights: tf.Tensor, training: bool
    ) -> tf.Tensor:
        short = self._short(x)
        if self._neighbors is None:
            neighbors, counts = gather_rows(x), gather_rows(weights)
        else:
            neighbors, counts = self._neighbors, None
        log_weights = neighbor_log_weights(
            short, self._short(neighbors), self.inverse_bandwidth, counts
        )
        samples = self.sample_log_probs(x, neighbors, training)
        target = self.restricted_model.probs(short)  # type: ignore[union-attr]
        return induced_cross_entropy(target, samples, log_weights).loss

    def _short(self, x: TensorLike) -> tf.Tensor:
        x = tf.convert_to_tensor(x)
        size = int(np.prod(x.shape[1:]))
        if max(self.short_features) >= size:
            raise ValueError(
                f"{type(self).__name__}: `short_features` must be below {size}, the "
                f"features of an example; found {self.short_features}."
            )
        return tf.gather(tf.reshape(x, [-1, size]), self.short_features, axis=1)

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        serialize = keras.saving.serialize_keras_object
        ratio = self.ratio
        config.update(
            restricted_model=serialize(self.restricted_model),
            short_features=self.short_features,
            ratio=ratio if isinstance(ratio, float | int) else serialize(ratio),
            inverse_bandwidth=self.inverse_bandwidth,
        )
        return config


@keras.saving.register_keras_serializable("rlm_tf")
class NeighborModelMatching(NeighborMatching):
    """`NeighborMatching` for any Keras classifier from examples to logits `[B, V]`.

    A step costs the plain one and a forward and backward pass over B times K examples.

    Args:
        model: Keras model, examples `[B, ...]` to logits `[B, V]`; built.
        restricted_model, short_features, **kwargs: See `NeighborMatching`.
    """

    def __init__(
        self,
        model: keras.Model,
        restricted_model: FeatureModel | None = None,
        short_features: Sequence[int] = (0,),
        **kwargs: Any,
    ):
        super().__init__(restricted_model, short_features, **kwargs)
        self.model = model
        self.built = True

    @property
    def example_shape(self) -> tuple[int, ...]:
        """The shape of one example."""
        return tuple(self.model.input_shape[1:])

    def call(self, x: TensorLike, training: bool = False) -> tf.Tensor:
        """Returns logits `[B, V]`."""
        return self.model(x, training=training)

    def class_log_probs(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        logits = no_probabilities(type(self).__name__, self.model(x, training=training))
        return tf.nn.log_softmax(tf.cast(logits, tf.float32))

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.update(model=keras.saving.serialize_keras_object(self.model))
        return config
