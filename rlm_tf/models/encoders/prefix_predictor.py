"""The next piece of a text, by a model that has learnt to fill in masked ones."""

from __future__ import annotations

from typing import Literal

import tensorflow as tf

from rlm_tf.checks import check_option
from rlm_tf.data.text.special_tokens import FIRST_IDS, SpecialIds
from rlm_tf.models.encoders.masked_language_model import MaskedLanguageModel

Hide = Literal["prefix", "mask", "causal"]
HIDES: tuple[Hide, ...] = ("prefix", "mask", "causal")


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

    A [MASK] has the segment of the token before it. Where positions are learnt and a
    text is as long as the encoder can read, nothing can be predicted behind its last
    token.

    Args:
        model: The masked language model.
        hide: One of these.
        special: Ids of its special tokens; by default those of `encoder_vocabulary`.

    Raises:
        ValueError: If `hide` is unknown, or `special` has ids that the model has not.
    """

    def __init__(
        self,
        model: MaskedLanguageModel,
        hide: Hide = "prefix",
        special: SpecialIds = FIRST_IDS,
    ) -> None:
        name = type(self).__name__
        check_option(name, "hide", hide, HIDES)
        special.check(name, model.vocabulary_size)
        self.model = model
        self.hide = hide
        self.special = special

    def __call__(
        self,
        tokens: tf.Tensor,
        training: bool = False,
        segments: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Returns logits `[B, T, V]`, at t those of token t + 1.

        Args:
            tokens: int `[B, T]`, padded.
            training: Whether dropout acts.
            segments: int `[B, T]`, of encoders that have them; None: all 0.

        Raises:
            ValueError: If no token fits behind the last one.
        """
        tokens = tf.convert_to_tensor(tokens)
        shape = tf.shape(tokens)
        if self._is_full(tokens):
            raise ValueError(
                f"{type(self).__name__}: behind a text of {tokens.shape[1]} tokens the "
                f"encoder reads no other (its `max_length`); ask `at` for earlier ones."
            )
        if self.hide == "causal":
            features = self._causal(tokens, segments, training)
            return self.model.logits(self.model.head.transform(features))
        rows, columns = tf.meshgrid(
            tf.range(shape[0]), tf.range(shape[1]), indexing="ij"
        )
        flat = tf.reshape(tf.stack([rows, columns], axis=-1), [-1, 2])
        found = self.at(tokens, flat, training, segments)
        size = self.model.vocabulary_size
        return tf.reshape(found, tf.concat([shape, [size]], axis=0))

    def at(
        self,
        tokens: tf.Tensor,
        places: tf.Tensor,
        training: bool = False,
        segments: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Returns logits `[N, V]` behind some tokens: a pass over N rows.

        Args:
            tokens: int `[B, T]`, padded.
            places: Row and place t of each, int `[N, 2]`; what is wanted is t + 1.
            training: Whether dropout acts.
            segments: int `[B, T]`, of encoders that have them; None: all 0.

        Raises:
            tf.errors.InvalidArgumentError: If no token fits behind one of them.
        """
        features = self.features_at(tokens, places, training, segments)
        return self.model.logits(features)

    def features_at(
        self,
        tokens: tf.Tensor,
        places: tf.Tensor,
        training: bool = False,
        segments: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Returns what the softmax reads behind some tokens, `[N, E]`; see `at`."""
        tokens = tf.convert_to_tensor(tokens)
        places = tf.cast(places, tf.int32)
        row, last = places[:, 0], places[:, 1:]
        full = self._is_full(tokens)
        if full:
            most = tf.cast(tf.shape(tokens)[1] - 1, last.dtype)
            name = type(self).__name__
            message = (
                f"{name}: no token fits behind the last one that the encoder reads"
            )
            with tf.control_dependencies(
                [tf.debugging.assert_less(last, most, message)]
            ):
                last = tf.identity(last)
        if self.hide == "causal":
            causal = self._causal(tokens, segments, training)
            features = tf.gather_nd(causal, tf.concat([row[:, tf.newaxis], last], 1))
            return self.model.head.transform(features)
        padding_id = tf.cast(self.model.encoder.padding_id, tokens.dtype)
        # One more than there are: a [MASK] may follow the last token.
        wider = [[0, 0], [0, 0 if full else 1]]
        longer = tf.pad(tokens, wider, constant_values=padding_id)
        own = tf.gather(longer, row)
        columns = tf.range(tf.shape(longer)[1])[tf.newaxis]
        mask = tf.cast(self.special.mask, tokens.dtype)
        if self.hide == "prefix":
            behind = tf.fill(tf.shape(own), padding_id)
        else:
            behind = tf.where(own != padding_id, mask, padding_id)
        shown = tf.where(columns <= last, own, behind)
        shown = tf.where(columns == last + 1, mask, shown)
        if segments is not None:
            segments = tf.gather(tf.pad(segments, wider), row)
            of_last = tf.gather(segments, last, batch_dims=1)
            segments = tf.where(columns == last + 1, of_last, segments)
        numbers = tf.range(tf.shape(row)[0])
        where = tf.stack([numbers, last[:, 0] + 1], axis=1)
        return self.model.features_at(shown, where, segments, training=training)

    def _is_full(self, tokens: tf.Tensor) -> bool:
        """Whether the encoder has no position for a token behind the last one."""
        encoder = self.model.encoder
        learnt = encoder.positions in ("absolute", "both")
        return learnt and tokens.shape[1] == encoder.max_length

    def _causal(
        self, tokens: tf.Tensor, segments: tf.Tensor | None, training: bool
    ) -> tf.Tensor:
        """Returns what the encoder gives, `[B, T, D]`, of one [MASK] for each token."""
        encoder = self.model.encoder
        steps = tf.shape(tokens)[1]
        places = tf.range(steps)
        # Nobody asks for what is behind a last token that nothing fits behind.
        behind = (
            tf.minimum(places + 1, steps - 1) if self._is_full(tokens) else places + 1
        )
        masks = tf.fill(tf.shape(tokens), tf.cast(self.special.mask, tokens.dtype))
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
            None if segments is None else tf.concat([segments, segments], axis=1),
            visible=visible[tf.newaxis],
            places=tf.concat([places, behind], axis=0),
            training=training,
        )
        return features[:, steps:]
