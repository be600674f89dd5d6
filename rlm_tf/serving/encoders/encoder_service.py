"""What exported encoders answer with: strings in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.data.labelled.encoded_rows import EncodedRows, encoded_rows
from rlm_tf.data.text.special_tokens import MASK, special_ids
from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.layers.transformer.transformer_encoder import TransformerEncoder
from rlm_tf.models.encoders.electra import Electra
from rlm_tf.models.encoders.masked_language_model import MaskedLanguageModel
from rlm_tf.serving.arguments import checked, checked_scalar, checked_texts
from rlm_tf.untracked import Untracked

_STRINGS = tf.TensorSpec([None], tf.string)
_INTEGER = tf.TensorSpec([], tf.int32)
_BLANK = "\u2581"


class EncoderService(tf.Module):
    """`embed` on raw UTF-8 strings.

    A text is read as `[CLS] pieces [SEP]`; ends of lines are blanks. Of a text that is
    longer than the window the beginning counts, and `cut` says so. Invalid UTF-8 is
    replaced by U+FFFD; a text of more than MAX_TEXT_BYTES is an error.

    Operations are those of plain TensorFlow and of TensorFlow Text. The module tracks
    the weights and the vocabulary, not the Keras model.

    Args:
        encoder: The encoder.
        vocabulary: The vocabulary that it was trained with.
        length: Of the window, [CLS] and [SEP] included.
        weights: All that the answers depend on.

    Raises:
        ValueError: If the vocabulary is another one's.
    """

    def __init__(
        self,
        encoder: TransformerEncoder,
        vocabulary: Vocabulary,
        length: int,
        weights: Iterable[keras.Variable] | None = None,
    ) -> None:
        super().__init__(name="encoder_service")
        self.length = length
        self._ids = Untracked(special_ids(vocabulary))
        if encoder.vocabulary_size != len(vocabulary):
            raise ValueError(
                f"the encoder has {encoder.vocabulary_size} tokens, the vocabulary "
                f"{len(vocabulary)}: they do not belong together."
            )
        self._encoder = Untracked(encoder)
        self._tables = vocabulary.graph_tables()
        self._names = tf.Variable(
            [name.replace(_BLANK, " ") for name in vocabulary.tokens],
            trainable=False,
            name="token_names",
        )
        self._never = Untracked((*vocabulary.never_in_text, vocabulary.eos_id))
        self._weights = [w.value for w in weights or encoder.weights]

    @tf.function(input_signature=[_STRINGS], autograph=False)
    def embed(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns a vector for each text.

        Args:
            texts: Strings `[N]`.

        Returns:
            `embeddings`: float32 `[N, D]`, the mean of the last layer over all tokens;
            `cut`: bool `[N]`, texts that are longer than the window.
        """
        rows = self._rows("embed", texts)
        features = self._encoder.value(rows.tokens, self._segments(rows))
        features = tf.cast(features, tf.float32)
        present = tf.cast(rows.tokens != self._ids.value.padding, tf.float32)
        total = tf.reduce_sum(features * present[..., tf.newaxis], axis=1)
        number = tf.reduce_sum(present, axis=1, keepdims=True)
        return {"embeddings": total / number, "cut": rows.cut}

    def requests(self) -> dict[str, dict[str, tf.Tensor]]:
        """Returns small inputs of each signature, for a server to warm up with."""
        return {"embed": {"texts": tf.constant(["a text"])}}

    def signatures(self) -> dict[str, Any]:
        """Returns the functions for `tf.saved_model.save`, which traces them once."""
        return {name: getattr(self, name) for name in self.requests()}

    def _rows(
        self, function: str, texts: tf.Tensor, texts_b: tf.Tensor | None = None
    ) -> EncodedRows:
        """Returns the rows of texts, no longer than the longest of them."""
        texts = checked_texts(function, "texts", texts)
        if texts_b is not None:
            texts_b = checked_texts(function, "texts_b", texts_b)
        ids = self._ids.value
        rows = encoded_rows(self._tables, ids, texts, texts_b, self.length)
        return self._trimmed(rows)

    def _trimmed(self, rows: EncodedRows) -> EncodedRows:
        present = rows.tokens != self._ids.value.padding
        lengths = tf.reduce_sum(tf.cast(present, tf.int32), axis=1)
        # Of no texts, too, there is a column.
        longest = tf.reduce_max(tf.concat([lengths, [1]], axis=0))
        return rows._replace(
            tokens=rows.tokens[:, :longest], segments=rows.segments[:, :longest]
        )

    def _segments(self, rows: EncodedRows) -> tf.Tensor | None:
        return rows.segments if self._encoder.value.num_segments else None


class MaskedLanguageService(EncoderService):
    """An `EncoderService` with `fill_mask`.

    Args:
        model: The masked language model.
        vocabulary: See `EncoderService`.
        length: Likewise.
        encoder: What `embed` and others use; None: that of the model.
        weights: All weights; None: those of the model.
    """

    def __init__(
        self,
        model: MaskedLanguageModel,
        vocabulary: Vocabulary,
        length: int,
        encoder: TransformerEncoder | None = None,
        weights: Iterable[keras.Variable] | None = None,
    ) -> None:
        super().__init__(
            encoder or model.encoder, vocabulary, length, weights or model.weights
        )
        self._masked_model = Untracked(model)

    @tf.function(input_signature=[_STRINGS, _INTEGER], autograph=False)
    def fill_mask(self, texts: tf.Tensor, k: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the k most probable tokens in the place of each [MASK].

        A blank before a [MASK] belongs to the token that is wanted.

        Args:
            texts: Strings `[N]`, with any number of `[MASK]`.
            k: int32 >= 1; more than there are tokens counts as all.

        Returns:
            `tokens`: strings `[N, M, k]`, most probable first, M the largest number of
                masks; "" where a text has fewer;
            `probabilities`: float32 `[N, M, k]`, 0 where a text has fewer;
            `cut`: bool `[N]`, texts that are longer than the window.

        Raises:
            tf.errors.InvalidArgumentError: When run, if k < 1.
        """
        k = checked_scalar("fill_mask", "k", k)
        k = checked(k, k >= 1, "fill_mask: k must be at least 1, found")
        ids = self._ids.value
        rows = self._masked_rows(checked_texts("fill_mask", "texts", texts))
        is_mask = tf.equal(rows.tokens, ids.mask)
        logits = self._masked_model.value.logits_at(rows.tokens, tf.where(is_mask))
        logits = tf.cast(logits, tf.float32)
        size = logits.shape[-1]
        banned = tf.reduce_any(tf.one_hot(self._never.value, size) > 0, axis=0)
        logits = tf.where(banned, logits.dtype.min, logits)
        most = size - len(self._never.value)
        best = tf.math.top_k(tf.nn.softmax(logits), tf.minimum(k, most))
        numbers = tf.reduce_sum(tf.cast(is_mask, tf.int64), axis=1)

        def by_text(values: tf.Tensor) -> tf.Tensor:
            return tf.RaggedTensor.from_row_lengths(values, numbers).to_tensor()

        return {
            "tokens": by_text(tf.gather(self._names, best.indices)),
            "probabilities": by_text(best.values),
            "cut": rows.cut,
        }

    def requests(self) -> dict[str, dict[str, tf.Tensor]]:
        texts = tf.constant([f"a {MASK} text"])
        return {
            **super().requests(),
            "fill_mask": {"texts": texts, "k": tf.constant(1)},
        }

    def _masked_rows(self, texts: tf.Tensor) -> EncodedRows:
        """Returns rows in which [MASK] is what it means."""
        ids = self._ids.value
        words = tf.strings.strip(tf.strings.regex_replace(texts, "[ \t\r\n\v\f]+", " "))
        words = tf.strings.regex_replace(words, r" ?\[MASK\]", MASK)
        parts = tf.strings.split(words, sep=MASK)
        pieces = self._tables.encode(parts.flat_values)
        # Every part but the last of a text ends in a mask.
        last = tf.scatter_nd(
            parts.row_limits()[:, tf.newaxis] - 1,
            tf.ones_like(parts.row_limits()),
            tf.shape(parts.flat_values, tf.int64),
        )
        masks = tf.RaggedTensor.from_row_lengths(
            tf.fill([tf.reduce_sum(1 - last)], ids.mask), 1 - last
        )
        joined = tf.concat([pieces, tf.cast(masks, pieces.dtype)], axis=1)
        splits = tf.gather(joined.row_splits, parts.row_splits)
        found = tf.RaggedTensor.from_row_splits(joined.flat_values, splits)
        room = self.length - 2
        cut = found.row_lengths() > room
        kept = found[:, :room]

        def ends(token: int) -> tf.RaggedTensor:
            column = tf.fill([kept.nrows(), 1], tf.constant(token, kept.dtype))
            return tf.RaggedTensor.from_tensor(column)

        whole = tf.concat([ends(ids.cls), kept, ends(ids.sep)], axis=1)
        tokens = whole.to_tensor(ids.padding)
        return EncodedRows(tokens, tf.zeros_like(tokens), cut)


class ElectraService(MaskedLanguageService):
    """A `MaskedLanguageService` of the generator, with `token_scores` of the detector.

    Args:
        model: The model.
        vocabulary: See `EncoderService`.
        length: Likewise.
    """

    def __init__(self, model: Electra, vocabulary: Vocabulary, length: int) -> None:
        super().__init__(
            model.generator, vocabulary, length, model.discriminator, model.weights
        )
        self._detector = Untracked(model)

    @tf.function(input_signature=[_STRINGS], autograph=False)
    def token_scores(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns how probably each token stands in the place of another.

        Args:
            texts: Strings `[N]`.

        Returns:
            `tokens`: strings `[N, L]`, L the largest number of tokens; "" behind the
                end of a text;
            `probabilities`: float32 `[N, L]`, of being replaced; 0 behind the end;
            `cut`: bool `[N]`, texts that are longer than the window.
        """
        rows = self._rows("token_scores", texts)
        ids = self._ids.value
        logits = self._detector.value((rows.tokens, self._segments(rows)))
        probs = tf.sigmoid(tf.cast(logits, tf.float32))[:, 1:]
        tokens = rows.tokens[:, 1:]
        is_text = (tokens != ids.padding) & (tokens != ids.sep)
        return {
            "tokens": tf.where(is_text, tf.gather(self._names, tokens), "")[:, :-1],
            "probabilities": tf.where(is_text, probs, 0.0)[:, :-1],
            "cut": rows.cut,
        }

    def requests(self) -> dict[str, dict[str, tf.Tensor]]:
        texts = tf.constant(["a text"])
        return {**super().requests(), "token_scores": {"texts": texts}}
