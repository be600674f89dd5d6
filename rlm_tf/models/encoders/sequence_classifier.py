"""A classifier of texts on top of an encoder."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import (
    check_integer,
    check_option,
    check_range,
    check_shapes,
)
from rlm_tf.layers.basic.replica_dropout import ReplicaDropout
from rlm_tf.layers.transformer.pooled_encoder import POOLINGS, Pooling, pooled
from rlm_tf.layers.transformer.transformer_encoder import TransformerEncoder
from rlm_tf.metrics.declared import declared
from rlm_tf.models.supervised import supervised
from rlm_tf.numerics import at_least_single
from rlm_tf.objective_model.objective_model import ObjectiveModel
from rlm_tf.objective_model.term import TermLoss, TermSpec
from rlm_tf.optimizers.decoupled_optimizer import DecoupledOptimizer
from rlm_tf.seeds import Seeds


@keras.saving.register_keras_serializable("rlm_tf")
class SequenceClassifier(ObjectiveModel):
    """Fine-tunes an encoder to tell classes of texts, or to give each a number.

    What the encoder gives of the first token, [CLS], goes through a layer with GELU to
    the logits, as in ELECTRA. The mean over all tokens goes there with
    `pooling="mean"`, which encoders that have seen little text do better with: [CLS]
    has to learn first where to look.

    `fit()` takes batches `((tokens, segments), labels)`, as `LabelledBatches` gives
    them, perhaps with weights of examples behind.

    Logs: `nll` and `accuracy`; of numbers `squared_error`.

    Args:
        encoder: The encoder.
        num_classes: C, at least 2; None: labels are numbers.
        dropout: Rate before both layers; None: that of the encoder.
        pooling: "cls" or "mean", over all that is no padding.
        label_mean: Of labels that are numbers: what the head gives is in units of
            `label_scale` from here, and so is the loss that is learnt from, so that
            rates suit labels of any size. Those of the training labels are best.
        label_scale: Their deviation, positive.
        seed: Of the first weights of the layers, and of dropout.
        **kwargs: Of `ObjectiveModel` and `keras.Model`.

    Raises:
        ValueError: If `encoder` is none, or a number out of range.
    """

    def __init__(
        self,
        encoder: TransformerEncoder,
        num_classes: int | None,
        *,
        dropout: float | None = None,
        pooling: Pooling = "cls",
        label_mean: float = 0.0,
        label_scale: float = 1.0,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        name = type(self).__name__
        check_range(name, -math.inf, math.inf, label_mean=label_mean)
        check_range(name, float(np.finfo("f4").tiny), math.inf, label_scale=label_scale)
        check_option(name, "pooling", pooling, POOLINGS)
        if not isinstance(encoder, TransformerEncoder):
            raise ValueError(
                f"{name}: `encoder` must be an rlm_tf.layers.TransformerEncoder, found "
                f"{type(encoder).__name__}."
            )
        super().__init__(**{"dtype": encoder.dtype_policy, **kwargs})
        if num_classes is not None:
            check_integer(name, "num_classes", num_classes, 2)
        if dropout is not None:
            check_range(name, 0.0, 0.999, dropout=dropout)
        self.encoder = encoder
        self.num_classes = num_classes
        self.dropout = dropout
        self.pooling = pooling
        self.label_mean = label_mean
        self.label_scale = label_scale
        self.seed = seed
        seeds, policy = Seeds(seed, self), self.dtype_policy
        rate = encoder.dropout if dropout is None else dropout
        for layer, units in (("dense", encoder.width), ("logits", num_classes or 1)):
            lose = ReplicaDropout(
                rate,
                seed=seeds.next(),
                dtype=policy,
                name=f"{layer}_dropout",
            )
            dense = keras.layers.Dense(
                units,
                kernel_initializer=keras.initializers.TruncatedNormal(
                    stddev=encoder.initializer_range, seed=seeds.next()
                ),
                dtype=policy,
                name=layer,
            )
            dense.build((None, encoder.width))
            setattr(self, f"{layer}_dropout", lose)
            setattr(self, f"{layer}_layer", dense)
        self.accuracy_metric = declared(keras.metrics.Mean(name="accuracy"), "up")
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the parts have their weights."""

    # === Declarations ===

    @property
    def is_regression(self) -> bool:
        """Whether labels are numbers."""
        return self.num_classes is None

    @property
    def term_specs(self) -> list[TermSpec]:
        if not self.is_regression:
            return [TermSpec("nll")]
        # The metric is in units of labels, what is learnt from is not.
        return [TermSpec("squared_error", self.label_scale**-2.0)]

    @property
    def parts(self) -> Mapping[str, Sequence[Any]]:
        """Embeddings, blocks and head, from below: what `layerwise_decay` decays."""
        encoder = self.encoder
        blocks = {block.name: [block] for block in encoder.blocks}
        others = [layer for layer in encoder.own_layers if layer not in encoder.blocks]
        # A normalisation behind all blocks is above them.
        last = [layer for layer in others if layer.name == "final_norm"]
        below = [layer for layer in others if layer not in last]
        return {
            "embedding": [encoder.embedding, *below],
            **blocks,
            "head": [*last, self.dense_layer, self.logits_layer],
        }

    # === Computation ===

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns logits `[B, C]`, or numbers `[B]`.

        Args:
            inputs: Tokens int `[B, T]`, or `(tokens, segments)`.
            training: Whether dropout acts.
        """
        parts = inputs if isinstance(inputs, tuple | list) else (inputs, None)
        tokens, segments = parts
        if not self.encoder.num_segments:
            segments = None
        features = pooled(
            self.encoder(tokens, segments, training=training),
            tokens,
            self.pooling,
            self.encoder.padding_id,
        )
        hidden = self.dense_layer(self.dense_dropout(features, training=training))
        hidden = keras.activations.gelu(hidden, approximate=False)
        found = self.logits_layer(self.logits_dropout(hidden, training=training))
        if not self.is_regression:
            return found
        return self.label_mean + self.label_scale * at_least_single(found[:, 0])

    # === Objective ===

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> Mapping[str, TermLoss]:
        name = type(self).__name__
        batches = "`((tokens, segments), labels)`, as `LabelledBatches` gives them"
        found = self(x, training=training)
        if not self.is_regression:
            said = supervised(
                name, found, y, sample_weight, self.accuracy_metric, batches=batches
            )
            return {"nll": said.term}
        if y is None:
            raise ValueError(f"{name}: no labels; expected batches {batches}.")
        found, labels = at_least_single(found), tf.convert_to_tensor(y)
        check_shapes(name, labels=(labels, "B"), texts=(found, "B"))
        weights = sample_weight
        if weights is None:
            weights = tf.ones_like(labels, tf.float32)
        loss = tf.square(found - tf.cast(labels, found.dtype))
        return {"squared_error": TermLoss(loss, weights)}

    def _logged(self, training: bool) -> list[keras.metrics.Metric]:
        found = super()._logged(training)
        silent = self.accuracy_metric if self.is_regression else None
        return [metric for metric in found if metric is not silent]

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "num_classes": self.num_classes,
            "dropout": self.dropout,
            "pooling": self.pooling,
            "label_mean": self.label_mean,
            "label_scale": self.label_scale,
            "seed": self.seed,
        }


def layerwise_decay(
    model: SequenceClassifier,
    optimizer: Callable[[float], keras.optimizers.Optimizer],
    decay: float,
) -> DecoupledOptimizer:
    """Returns an optimiser whose rate falls from layer to layer, downwards.

    The head has the rate, the last block `decay` times that, and so on; embeddings have
    the least, as in ELECTRA's fine-tuning.

    Args:
        model: The classifier.
        optimizer: Returns an optimiser whose rate is multiplied by a factor.
        decay: In (0, 1].

    Raises:
        ValueError: If `decay` is out of range.
    """
    check_range("layerwise_decay", 1e-6, 1.0, decay=decay)
    names = list(model.parts)
    depth = len(names) - 1
    return DecoupledOptimizer(
        {name: optimizer(decay ** (depth - i)) for i, name in enumerate(names)}
    )
