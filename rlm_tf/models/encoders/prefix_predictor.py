"""The next piece of a text, by a model that has learnt to fill in masked ones."""

from __future__ import annotations

from typing import Literal

import tensorflow as tf

from rlm_tf.checks import check_option
from rlm_tf.data.text.special_tokens import ENCODER_RESERVED, MASK
from rlm_tf.models.encoders.masked_language_model import MaskedLanguageModel

Hide = Literal["prefix", "mask", "causal"]
HIDES: tuple[Hide, ...] = ("prefix", "mask", "causal")
_MASK_ID = ENCODER_RESERVED.index(MASK)


class PrefixPredictor:
    """Makes a masked language model autoregressive: token t + 1 from those before it.

    Each prediction is that of a [MASK] behind tokens 0 to t. What is behind it is
    hidden in one of three ways:

        prefix  There is nothing: tokens 0 to t and one [MASK], T passes for a text of T
                tokens.
        mask    All tokens behind are [MASK], too (padding stays): as published of IMM
                in fine-tuning, but it tells how long the text is.
        causal  One pass: a [MASK] for each place sees itself and the tokens before it,
                and these see only what is before them. With one layer it is "prefix";
                with more, tokens are encoded without what is behind them, not even the
                [MASK].

    Args:
        model: The masked language model.
        hide: One of these.

    Raises:
        ValueError: If `hide` is unknown.
    """

    def __init__(self, model: MaskedLanguageModel, hide: Hide = "prefix") -> None:
        check_option(type(self).__name__, "hide", hide, HIDES)
        self.model = model
        self.hide = hide

    def __call__(self, tokens: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns logits `[B, T, V]`, at t those of token t + 1.

        Args:
            tokens: int `[B, T]`, padded.
            training: Whether dropout acts.
        """
        shape = tf.shape(tokens)
        if self.hide == "causal":
            features = self._causal(tokens, training)
            return self.model.logits(self.model.head.transform(features))
        rows, columns = tf.meshgrid(
            tf.range(shape[0]), tf.range(shape[1]), indexing="ij"
        )
        flat = tf.reshape(tf.stack([rows, columns], axis=-1), [-1, 2])
        found = self.at(tokens, flat, training)
        size = self.model.vocabulary_size
        return tf.reshape(found, tf.concat([shape, [size]], axis=0))

    def at(
        self, tokens: tf.Tensor, places: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Returns logits `[N, V]` behind some tokens: a pass over N rows.

        Args:
            tokens: int `[B, T]`, padded.
            places: Row and place t of each, int `[N, 2]`; what is wanted is t + 1.
            training: Whether dropout acts.
        """
        return self.model.logits(self.features_at(tokens, places, training))

    def features_at(
        self, tokens: tf.Tensor, places: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Returns what the softmax reads behind some tokens, `[N, E]`; see `at`."""
        if self.hide == "causal":
            features = tf.gather_nd(self._causal(tokens, training), places)
            return self.model.head.transform(features)
        padding_id = tf.cast(self.model.encoder.padding_id, tokens.dtype)
        places = tf.cast(places, tf.int32)
        row, last = places[:, 0], places[:, 1:]
        # One more than there are: a [MASK] may follow the last token.
        longer = tf.pad(tokens, [[0, 0], [0, 1]], constant_values=0)
        own = tf.gather(longer, row)
        columns = tf.range(tf.shape(longer)[1])[tf.newaxis]
        mask = tf.cast(_MASK_ID, tokens.dtype)
        if self.hide == "prefix":
            behind = tf.fill(tf.shape(own), padding_id)
        else:
            present = (own != padding_id) & (columns < tf.shape(longer)[1] - 1)
            behind = tf.where(present, mask, padding_id)
        shown = tf.where(columns <= last, own, behind)
        shown = tf.where(columns == last + 1, mask, shown)
        numbers = tf.range(tf.shape(row)[0])
        where = tf.stack([numbers, last[:, 0] + 1], axis=1)
        return self.model.features_at(shown, where, training=training)

    def _causal(self, tokens: tf.Tensor, training: bool) -> tf.Tensor:
        """Returns what the encoder gives, `[B, T, D]`, of one [MASK] for each token."""
        encoder = self.model.encoder
        steps = tf.shape(tokens)[1]
        places = tf.range(steps)
        masks = tf.fill(tf.shape(tokens), tf.cast(_MASK_ID, tokens.dtype))
        both = tf.concat([tokens, masks], axis=1)
        before = places[:, tf.newaxis] >= places
        own = tf.equal(places[:, tf.newaxis], places)
        visible = tf.concat(
            [
                tf.concat([before, tf.zeros_like(own)], axis=1),
                tf.concat([before, own], axis=1),
            ],
            axis=0,
        )
        features = encoder(
            both,
            visible=visible[tf.newaxis],
            places=tf.concat([places, places + 1], axis=0),
            training=training,
        )
        return features[:, steps:]
