"""A neural network over a short context as a restricted model."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_integer, checked_tokens
from rlm_tf.nested_config import NestedConfig
from rlm_tf.restricted.restricted_model import (
    RestrictedModel,
    contexts_of,
)
from rlm_tf.typing import TensorLike


@keras.saving.register_keras_serializable("rlm_tf")
class NeuralRestrictedModel(NestedConfig, RestrictedModel):
    """A short-context language model: `softmax(network(short context))`.

    Without `network` it is a feed-forward n-gram model: the embeddings of the context
    words, concatenated, one layer of `tanh` units, and a softmax over the vocabulary
    (Bengio et al., 2003, without the direct connections). The layer is frozen
    (`trainable=False`) except while `fit_tokens` runs, so a model that owns it leaves
    its weights alone, and no gradient flows out of it.

    Args:
        vocabulary_size: V.
        context_length: Words of short context L, at least 1.
        embedding_width: Width of a word's embedding; unused with `network`.
        hidden_width: Number of `tanh` units; unused with `network`.
        network: A Keras model from ids `[N, L]` to logits `[N, V]`, or None.
        seed: Seed of the initial weights and of the order of the training examples.
        **kwargs: Arguments of `keras.layers.Layer`.

    Raises:
        ValueError: If a size is not positive, or if the logits have another width.
    """

    def __init__(
        self,
        vocabulary_size: int,
        context_length: int = 1,
        *,
        embedding_width: int = 64,
        hidden_width: int = 128,
        network: keras.Model | None = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"trainable": False, **kwargs})
        for name, size in (
            ("vocabulary_size", vocabulary_size),
            ("context_length", context_length),
            ("embedding_width", embedding_width),
            ("hidden_width", hidden_width),
        ):
            check_integer("NeuralRestrictedModel", name, size, 1)
        self.vocabulary_size = vocabulary_size
        self.context_length = context_length
        self.embedding_width = embedding_width
        self.hidden_width = hidden_width
        self.seed = seed
        self.network = network
        self._logits = network or _feed_forward(
            vocabulary_size, context_length, embedding_width, hidden_width, seed
        )
        found = self._logits(tf.zeros([1, context_length], tf.int32)).shape
        if tuple(found) != (1, vocabulary_size):
            raise ValueError(
                f"NeuralRestrictedModel: `network` must map ids [N, {context_length}] "
                f"to logits [N, {vocabulary_size}], found {tuple(found)} for N = 1."
            )
        self._logits.trainable = False
        self.built = True

    # === Distributions ===

    def log_probs(self, short_contexts: TensorLike) -> tf.Tensor:
        return tf.nn.log_softmax(self._float_logits(short_contexts))

    def probs(self, short_contexts: TensorLike) -> tf.Tensor:
        return tf.nn.softmax(self._float_logits(short_contexts))

    def _float_logits(self, short_contexts: TensorLike) -> tf.Tensor:
        contexts = tf.cast(self._context_matrix(short_contexts), tf.int32)
        logits = self._logits(contexts, training=False)
        return tf.stop_gradient(tf.cast(logits, tf.float32))

    # === Training ===

    def fit_tokens(
        self,
        tokens: npt.ArrayLike,
        *,
        epochs: int = 5,
        batch_size: int = 256,
        learning_rate: float = 3e-3,
        validation_tokens: npt.ArrayLike | None = None,
        verbose: int = 0,
    ) -> keras.callbacks.History:
        """Trains the network with Adam on the cross-entropy of a stream's next words.

        Args:
            tokens: Integer ids `[T]`; tokens with a full short context are targets.
            epochs: Passes over the stream.
            batch_size: Targets per step.
            learning_rate: Learning rate of Adam.
            validation_tokens: A stream to report the loss of after each epoch, or None.
            verbose: As in `keras.Model.fit`; 1 shows a progress bar.

        Returns:
            The history of `loss` (and `val_loss`), nats per token.

        Raises:
            ValueError: If a stream is too short or is not ids in `[0, V)`.
        """
        examples = self._examples("tokens", tokens).shuffle(
            1 << 20, seed=self.seed, reshuffle_each_iteration=True
        )
        validation = None
        if validation_tokens is not None:
            validation = self._examples("validation_tokens", validation_tokens)
            validation = validation.batch(batch_size)
        trainer = _Trainer(self._logits)
        self._logits.trainable = True
        try:
            trainer.compile(
                optimizer=keras.optimizers.Adam(learning_rate),
                loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            )
            return trainer.fit(
                examples.batch(batch_size),
                epochs=epochs,
                shuffle=False,  # The data set does.
                validation_data=validation,
                verbose=verbose,
            )
        finally:
            self._logits.trainable = False

    def _examples(self, name: str, tokens: npt.ArrayLike) -> tf.data.Dataset:
        stream = checked_tokens("fit_tokens", tokens, self._known_vocabulary_size())
        if len(stream) <= self.context_length:
            raise ValueError(
                f"fit_tokens: `{name}` must have more than {self.context_length} "
                f"token(s), found {len(stream)}."
            )
        stream = stream.astype(np.int32)
        return tf.data.Dataset.from_tensor_slices(
            (contexts_of(stream, self.context_length), stream[self.context_length :])
        )

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        network = self.network
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "context_length": self.context_length,
            "embedding_width": self.embedding_width,
            "hidden_width": self.hidden_width,
            "network": network and keras.saving.serialize_keras_object(network),
            "seed": self.seed,
        }


class _Trainer(keras.Model):
    """Keeps the optimiser and the compiled step out of the network it trains."""

    def __init__(self, network: keras.Model) -> None:
        super().__init__(name="trainer")  # Keras rejects a leading underscore.
        self.network = network

    def call(self, contexts: tf.Tensor, training: bool = False) -> tf.Tensor:
        return self.network(contexts, training=training)


def _feed_forward(
    vocabulary_size: int, context_length: int, embedding: int, hidden: int, seed: int
) -> keras.Model:
    def uniform(offset: int) -> keras.initializers.Initializer:
        return keras.initializers.GlorotUniform(seed=seed + offset)

    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input([context_length], dtype="int32"),
            layers.Embedding(vocabulary_size, embedding, uniform(0)),
            layers.Flatten(),
            layers.Dense(hidden, "tanh", kernel_initializer=uniform(1)),
            layers.Dense(vocabulary_size, kernel_initializer=uniform(2)),
        ]
    )
