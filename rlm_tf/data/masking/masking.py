"""Masks the batches that encoders are trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from rlm_tf.data.masking.mask_tokens import Scheme, mask_tokens
from rlm_tf.data.text.special_tokens import special_ids
from rlm_tf.data.text.tokenisation import WORD_PIECE_RULES
from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.host_tensors import host_tensor

# What SentencePiece writes for a blank, with which words begin; what WordPiece puts in
# front of pieces that go on.
_BLANK, _GOES_ON = "\u2581", "##"


class Masking:
    """Adds masked tokens and their positions to batches, drawn anew in each step.

    Used as `ResumableBatches(Segments(...), transform=Masking(...))`
    (`rlm_tf.training`). What is drawn is a function of seed, epoch, step and row, made
    before replicas share a batch out.

    Args:
        vocabulary: Of an encoder, see `encoder_vocabulary`.
        ratio: See `mask_tokens`.
        scheme: Likewise; where "bert" draws padding, which nobody would see, there is
            [MASK].
        whole_words: Whether words are masked whole: a word begins with a blank or, of
            WordPiece, with a piece without ##.
        seed: Of the draws.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        ratio: float = 0.15,
        scheme: Scheme = "mask",
        whole_words: bool = False,
        seed: int = 0,
    ) -> None:
        self.ids = special_ids(vocabulary)
        self.vocabulary_size = len(vocabulary)
        self.ratio = ratio
        self.scheme = scheme
        self.whole_words = whole_words
        self.seed = seed
        # Pieces of words either say where words begin, or where they go on.
        if vocabulary.rule in WORD_PIECE_RULES:
            begins = [not token.startswith(_GOES_ON) for token in vocabulary.tokens]
        else:
            begins = [token.startswith(_BLANK) for token in vocabulary.tokens]
        self._starts = np.array(begins)

    def __call__(self, element: Any, epoch: Any, step: Any) -> tuple[Any]:
        """Masks one batch.

        Args:
            element: Tokens int `[B, T]`, or `(tokens, segments)`.
            epoch: Integer scalar.
            step: Integer scalar, the step within the epoch.

        Returns:
            `(x,)` with x = `(tokens, masked tokens, positions)`, int32 `[B, T]` each,
            positions 1 where masked; segments behind them if there are any.
        """
        tokens, *segments = element if isinstance(element, tuple) else (element,)
        seed = tf.constant([self.seed, 0], tf.int64)
        for data in (epoch, step):
            seed = tf.random.experimental.stateless_fold_in(seed, data)
        ids = self.ids
        special = tf.equal(tokens, ids.cls) | tf.equal(tokens, ids.sep)
        starts = None
        if self.whole_words:
            after = tf.pad(special[:, :-1], [[0, 0], [1, 0]])
            starts = tf.gather(host_tensor(self._starts), tokens) | after
        found = mask_tokens(
            tokens,
            special,
            padding=tf.equal(tokens, ids.padding),
            mask_id=ids.mask,
            vocabulary_size=self.vocabulary_size,
            ratio=self.ratio,
            scheme=self.scheme,
            word_starts=starts,
            seed=seed,
        )
        positions = tf.cast(found.positions, tf.int32)
        is_lost = found.positions & tf.equal(found.tokens, ids.padding)
        shown = tf.where(is_lost, tf.cast(ids.mask, found.tokens.dtype), found.tokens)
        return ((tokens, shown, positions, *segments),)

    def of_all(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """Returns batches to evaluate on, masked alike in every pass."""
        return dataset.enumerate().map(lambda step, element: self(element, 0, step))
