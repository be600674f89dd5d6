"""A classifier of documents on any encoder of their tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, check_range
from rlm_tf.layers.basic.replica_dropout import ReplicaDropout
from rlm_tf.metrics.declared import declared
from rlm_tf.models.supervised import supervised
from rlm_tf.models.text_classifiers.text_reader import TextReader
from rlm_tf.nested_config import made_objects
from rlm_tf.objective_model.objective_model import ObjectiveModel
from rlm_tf.objective_model.term import TermLoss, TermSpec
from rlm_tf.seeds import Seeds


@keras.saving.register_keras_serializable("rlm_tf")
class TextClassifier(ObjectiveModel):
    """Tells the class of a document from the vector that an encoder makes of it.

    `fit()` takes batches `((tokens, ids), labels)`, as `DocumentBatches` gives them,
    perhaps with weights of documents behind, or `(tokens, labels)`; labels may be
    probabilities. Ids are for transforms such as `WordDeletion` and have no part.

    Logs: `nll` and `accuracy`.

    Args:
        encoder: Any Keras layer from token ids int `[B, T]` to vectors `[B, D]`.
        num_classes: C, at least 2.
        head: Whether a layer makes logits of the vectors; without, D is C, and they are
            logits but for a bias (`TfidfBag(vocabulary_size, num_classes)` makes a
            linear model).
        dropout: Rate before the head.
        label_smoothing: Share of each label that all classes have alike, in training.
        threshold: Below this probability of the likeliest class `labels_of` says
            nothing; 0: it always says something.
        reader: What makes tokens of texts; files and exports have it.
        class_names: C names, likewise.
        seed: Of the head's first weights, and of dropout.
        **kwargs: Of `ObjectiveModel` and `keras.Model`.

    Raises:
        ValueError: If `encoder` is no layer, a number is out of range, or there are
            more or fewer names than classes.
    """

    def __init__(
        self,
        encoder: keras.layers.Layer,
        num_classes: int,
        *,
        head: bool = True,
        dropout: float = 0.0,
        label_smoothing: float = 0.0,
        threshold: float = 0.0,
        reader: TextReader | None = None,
        class_names: Sequence[str] = (),
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        name = type(self).__name__
        if not isinstance(encoder, keras.layers.Layer):
            raise ValueError(
                f"{name}: `encoder` must be a Keras layer from token ids to vectors, "
                f"found {type(encoder).__name__}."
            )
        check_integer(name, "num_classes", num_classes, 2)
        check_range(name, 0.0, 0.999, dropout=dropout)
        check_range(name, 0.0, 1.0, label_smoothing=label_smoothing)
        check_range(name, 0.0, 1.0, threshold=threshold)
        if class_names and len(class_names) != num_classes:
            raise ValueError(
                f"{name}: `class_names` must be {num_classes} names, found "
                f"{len(class_names)}."
            )
        super().__init__(**{"dtype": encoder.dtype_policy, **kwargs})
        self.encoder = encoder
        self.num_classes = num_classes
        self.head = head
        self.dropout = dropout
        self.label_smoothing = label_smoothing
        self.threshold = threshold
        self.reader = reader
        self.class_names = tuple(class_names)
        self.seed = seed
        seeds, policy = Seeds(seed, self), self.dtype_policy
        self.dropout_layer = ReplicaDropout(
            dropout, seed=seeds.next(), dtype=policy, name="dropout"
        )
        if head:
            self.head_layer = keras.layers.Dense(
                num_classes,
                kernel_initializer=keras.initializers.GlorotUniform(seeds.next()),
                dtype=policy,
                name="logits",
            )
        else:
            self.bias = self.add_weight(
                name="bias", shape=[num_classes], initializer="zeros"
            )
        self.accuracy_metric = declared(keras.metrics.Mean(name="accuracy"), "up")

    def build(self, input_shape: Any = None) -> None:
        """Makes the weights, for batches of tokens or of tokens and ids."""
        if not self.encoder.built:
            self.encoder.build((None, None))
        shape = self.encoder.compute_output_shape((None, None))
        if self.head:
            self.head_layer.build(shape)
        elif shape[-1] != self.num_classes:
            raise ValueError(
                f"{type(self).__name__}: without a head the encoder's vectors must "
                f"have {self.num_classes} numbers, found {shape[-1]}."
            )
        self.built = True

    # === Declarations ===

    @property
    def term_specs(self) -> list[TermSpec]:
        return [TermSpec("nll")]

    # === Computation ===

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns logits `[B, C]`.

        Args:
            inputs: Tokens int `[B, T]`, or `(tokens, ids)`.
            training: Whether dropout acts.
        """
        tokens = inputs[0] if isinstance(inputs, tuple | list) else inputs
        features = self.encoder(tokens, **self._training(training))
        features = self.dropout_layer(features, training=training)
        return self.head_layer(features) if self.head else features + self.bias

    def _training(self, training: bool) -> dict[str, bool]:
        # Layers of users need not have it.
        has = getattr(self.encoder, "_call_has_training_arg", True)
        return {"training": training} if has else {}

    def labels_of(self, probs: Any) -> np.ndarray:
        """Returns the likeliest class of each document, int `[N]`, or -1.

        Args:
            probs: `[N, C]`.
        """
        said = np.asarray(probs)
        labels = said.argmax(axis=1)
        labels[said.max(axis=1, initial=0.0) < self.threshold] = -1
        return labels

    # === Objective ===

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> Mapping[str, TermLoss]:
        said = supervised(
            type(self).__name__,
            self(x, training=training),
            y,
            sample_weight,
            self.accuracy_metric,
            batches="((tokens, ids), labels)",
            smoothing=self.label_smoothing if training else 0.0,
        )
        return {"nll": said.term}

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "num_classes": self.num_classes,
            "head": self.head,
            "dropout": self.dropout,
            "label_smoothing": self.label_smoothing,
            "threshold": self.threshold,
            "reader": keras.saving.serialize_keras_object(self.reader),
            "class_names": list(self.class_names),
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """Returns the model of a config."""
        return cls(**made_objects(config, custom_objects))
