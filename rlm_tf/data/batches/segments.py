"""Segments of documents in rows of one length, as encoders are pre-trained on."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, check_range
from rlm_tf.data.text.special_tokens import special_ids
from rlm_tf.data.text.tokenisation import as_text
from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.host_tensors import host_tensor

# Shortest target of a row of random length.
_SHORTEST = 5


class _Document(NamedTuple):
    """Pieces of a document.

    Attributes:
        ids: int32 `[N]`.
        starts: bool `[N]`, pieces that begin a line.
    """

    ids: np.ndarray
    starts: np.ndarray


class Segments:
    """Packs the lines of documents into rows `[CLS] pieces [SEP]`.

    Documents are parted by empty lines; no row has pieces of two. Lines of a document
    are joined by blanks, and each row goes on where the last one ended; the last row of
    a document is padded. With `two_texts` most rows are `[CLS] first [SEP] second
    [SEP]`, parted where a line begins nearest to the middle, or else in the middle.

    Used as `ResumableBatches(Segments(...), transform=Masking(...))`
    (`rlm_tf.training`). Rows come in another order in each epoch, a function of (seed,
    epoch); what does not fill a batch is left out of that epoch.

    Args:
        text: The text.
        vocabulary: Of an encoder, see `encoder_vocabulary`.
        length: T, tokens of a row.
        batch_size: B.
        documents: Whether empty lines part documents; False: all is one, as where they
            only part paragraphs.
        two_texts: Whether rows have two texts, each with a segment of its own.
        single_share: With two texts, the share of the rows that have one.
        short_share: Share of the rows that end at a random length; ELECTRA has 0.05.
        seed: Of the order, and of what is random in rows.

    Attributes:
        tokens: int32 `[N, T]`.
        segments: int32 `[N, T]`, 1 for tokens of a second text.
        steps: Batches of an epoch.

    Raises:
        ValueError: If the text has fewer pieces than a row, there are fewer rows than a
            batch has, or an argument is out of range.
    """

    def __init__(
        self,
        text: str | bytes,
        vocabulary: Vocabulary,
        length: int,
        batch_size: int,
        *,
        documents: bool = True,
        two_texts: bool = False,
        single_share: float = 0.1,
        short_share: float = 0.0,
        seed: int = 0,
    ) -> None:
        name = type(self).__name__
        check_integer(name, "length", length, _SHORTEST)
        check_integer(name, "batch_size", batch_size, 1)
        check_integer(name, "seed", seed, 0)
        check_range(name, 0.0, 1.0, single_share=single_share, short_share=short_share)
        self.length = length
        self.batch_size = batch_size
        self.documents = documents
        self.two_texts = two_texts
        self.single_share = single_share
        self.short_share = short_share
        self.seed = seed
        self.ids = special_ids(vocabulary)
        found = [*_documents(as_text(text), vocabulary, documents)]
        pieces = sum(len(document.ids) for document in found)
        if pieces < length - 2:
            raise ValueError(
                f"{name}: the text must have at least the {length - 2} pieces of one "
                f"row (`length` {length}, less [CLS] and [SEP]), found {pieces}."
            )
        rows = [*self._rows(found)]
        if len(rows) < batch_size:
            raise ValueError(
                f"{name}: the text makes {len(rows)} rows of {length} tokens, fewer "
                f"than `batch_size`, {batch_size}."
            )
        self.tokens = np.stack([tokens for tokens, _ in rows])
        self.segments = np.stack([segments for _, segments in rows])
        self.steps = len(rows) // batch_size

    def in_batches_of(self, batch_size: int) -> Segments:
        """Returns the same rows in batches of another size.

        Raises:
            ValueError: If there are fewer rows.
        """
        name = f"{type(self).__name__}.in_batches_of"
        check_integer(name, "batch_size", batch_size, 1)
        if batch_size > len(self.tokens):
            raise ValueError(
                f"{name}: `batch_size` must be at most {len(self.tokens)}, the number "
                f"of rows, found {batch_size}."
            )
        found = copy.copy(self)
        found.batch_size = batch_size
        found.steps = len(self.tokens) // batch_size
        return found

    # === Rows ===

    def _rows(
        self, documents: list[_Document]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        rng = np.random.default_rng(self.seed)
        for document in documents:
            place = 0
            while place < len(document.ids):
                has_two = self.two_texts and rng.random() >= self.single_share
                most = self.length - (3 if has_two else 2)
                if rng.random() < self.short_share:
                    most = min(most, int(rng.integers(_SHORTEST, self.length + 1)))
                ids = document.ids[place : place + most]
                starts = document.starts[place : place + most]
                place += len(ids)
                yield self._row(ids, starts, has_two and len(ids) > 1)

    def _row(
        self, ids: np.ndarray, starts: np.ndarray, has_two: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        parts = [ids]
        if has_two:
            places = np.flatnonzero(starts[1:]) + 1
            middle = len(ids) // 2
            if len(places):
                middle = int(places[np.argmin(np.abs(places - middle))])
            parts = [ids[:middle], ids[middle:]]
        tokens = np.full(self.length, self.ids.padding, np.int32)
        segments = np.zeros(self.length, np.int32)
        tokens[0] = self.ids.cls
        end = 1
        for number, part in enumerate(parts):
            begin, end = end, end + len(part) + 1
            tokens[begin : end - 1] = part
            tokens[end - 1] = self.ids.sep
            segments[begin:end] = number
        return tokens, segments

    # === Batches ===

    def dataset(self, epoch: Any = 0, start_step: Any = 0) -> tf.data.Dataset:
        """Returns the batches of an epoch from a step on, in a random order.

        Returns:
            Tokens int32 `[B, T]`; with two texts `(tokens, segments)`.
        """
        seed = tf.stack([tf.constant(self.seed, tf.int64), tf.cast(epoch, tf.int64)])
        order = tf.random.experimental.stateless_shuffle(
            tf.range(len(self.tokens)), seed
        )
        batches = tf.reshape(
            order[: self.steps * self.batch_size], [self.steps, self.batch_size]
        )
        return self._looked_up(batches[tf.cast(start_step, tf.int32) :])

    def in_order(self, batch_size: int | None = None) -> tf.data.Dataset:
        """Returns batches of all rows, in their order; the last one may be smaller.

        Args:
            batch_size: Rows of a batch; None: B.
        """
        size = self.batch_size if batch_size is None else batch_size
        rows = tf.data.Dataset.range(len(self.tokens)).batch(size)
        return self._looked_up(rows)

    def _looked_up(self, rows: Any) -> tf.data.Dataset:
        if not isinstance(rows, tf.data.Dataset):
            rows = tf.data.Dataset.from_tensor_slices(rows)
        tokens, segments = host_tensor(self.tokens), host_tensor(self.segments)

        def look_up(rows: tf.Tensor) -> Any:
            found = tf.gather(tokens, rows)
            return (found, tf.gather(segments, rows)) if self.two_texts else found

        return rows.map(look_up)


def _documents(
    text: str, vocabulary: Vocabulary, are_parted: bool
) -> Iterator[_Document]:
    lines: list[str] = []
    firsts: list[int] = []
    is_within = False
    for line in text.split("\n"):
        words = line.strip()
        if not words:
            is_within &= not are_parted
            continue
        if not is_within:
            firsts.append(len(lines))
        # Joined by blanks.
        lines.append(f" {words}" if is_within else words)
        is_within = True
    if not lines:
        return
    # At once: a call for each line would take most of the time.
    ids = vocabulary.encode("\n".join(lines))
    ends = np.flatnonzero(ids == vocabulary.eos_id)
    parts = [part[i > 0 :] for i, part in enumerate(np.split(ids, ends))]
    for first, last in zip(firsts, [*firsts[1:], len(lines)], strict=True):
        own = parts[first:last]
        starts = np.zeros(sum(map(len, own)), bool)
        starts[np.cumsum([0, *map(len, own[:-1])])] = True
        yield _Document(np.concatenate(own), starts)
