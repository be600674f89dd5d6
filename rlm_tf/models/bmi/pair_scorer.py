"""What a trained discriminator and its language model say of pairs of text."""

from __future__ import annotations

import keras
import tensorflow as tf

from rlm_tf.layers.basic.pair_discriminator import PairDiscriminator
from rlm_tf.models.bmi.continuations import Continuation, continuation
from rlm_tf.models.bmi.pooling import Pooling, pooled
from rlm_tf.models.language.interface import LanguageModelInterface
from rlm_tf.padding import PADDING


class PairScorer:
    """Scores D and log-probabilities, each piece of text read from zero states.

    Args:
        view: Of the language model.
        discriminator: Of its features.
        pooling: How features of tokens become those of pieces.
    """

    def __init__(
        self,
        view: LanguageModelInterface,
        discriminator: PairDiscriminator,
        pooling: Pooling,
    ) -> None:
        self.view = view
        self.discriminator = discriminator
        self.pooling = pooling

    def features(self, tokens: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns phi of pieces of text.

        Args:
            tokens: int `[R, L]`, padded with -1.
            training: Whether dropout acts.

        Returns:
            `[R, F]`.
        """
        hidden, _ = self.view.read(tf.maximum(tokens, 0), training)
        return pooled(hidden, tokens != PADDING, self.pooling)

    def scores(
        self, first: tf.Tensor, second: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Returns D of pairs, `[R]`; arguments as those of `features`."""
        pieces = (self.features(piece, training) for piece in (first, second))
        return self.discriminator(tuple(pieces), training=training)

    def log_probs(self, first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
        """Returns ln Q(second | first) `[R]`, nats, without dropout."""
        rows = continuation(first, second)
        _, outputs = self.view.read(rows.tokens)
        return -tf.reduce_sum(self.nll(rows, outputs), axis=1)

    def nll(self, rows: Continuation, outputs: tf.Tensor) -> tf.Tensor:
        """Returns the negative log-likelihood of each token of Y, 0 behind its end.

        Args:
            rows: Pieces behind one another.
            outputs: What the language model gives of their tokens.

        Returns:
            `[R, L]`, nats.
        """
        at_places = tf.gather(outputs, rows.places, batch_dims=1)
        of_tokens = self.view.nll(at_places, rows.targets)
        return of_tokens * tf.cast(rows.weights, of_tokens.dtype)


def built_discriminator(
    owner: str,
    discriminator: PairDiscriminator | None,
    model: keras.Model,
    view: LanguageModelInterface,
) -> PairDiscriminator:
    """Returns a discriminator of what a model has for a sentence, None: a new one.

    Raises:
        ValueError: If it is none, or was built for another number of features.
    """
    critic = discriminator
    if critic is None:
        critic = PairDiscriminator(dtype=model.dtype_policy)
    if not isinstance(critic, PairDiscriminator):
        raise ValueError(
            f"{owner}: `discriminator` must be a PairDiscriminator or None, found "
            f"{critic!r}."
        )
    hidden, _ = view.read(tf.zeros([1, 1], tf.int32))
    width = sum(int(values.shape[-1]) for values in hidden)
    if not critic.built:
        critic.build(((None, width), (None, width)))
    elif critic.width != width:
        raise ValueError(
            f"{owner}: `discriminator` was built for {critic.width} features of a "
            f"sentence; {type(model).__name__} has {width}."
        )
    return critic
