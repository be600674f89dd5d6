"""Pieces of words: from text to ids and back, in Python."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rlm_tf.data.text import tokenisation
from rlm_tf.data.text.subwords import NEWLINE_PIECE
from rlm_tf.data.text.tokenisation import EOS

if TYPE_CHECKING:
    from rlm_tf.data.text.line_tables import LineTables
    from rlm_tf.data.text.subword_tables import SubwordTables
    from rlm_tf.data.text.word_piece_tables import WordPieceTables

# Lines that are encoded at once.
_LINES = 1 << 14
_LIGATURE = "\ufb01"


class Pieces(abc.ABC):
    """Encodes and decodes by the operations that a graph has.

    Attributes:
        pieces: In id order.
    """

    pieces: tuple[str, ...]
    _tables: LineTables

    @property
    @abc.abstractmethod
    def never_in_text(self) -> tuple[int, ...]:
        """Ids that no text has."""

    @property
    def normalises(self) -> bool:
        """Whether texts come back changed, as compatible characters become one."""
        return self.decode(self.encode(_LIGATURE)) != _LIGATURE

    @abc.abstractmethod
    def graph_tables(self) -> LineTables:
        """Returns a new `tf.Module` with `encode` and `decode`, for a SavedModel."""

    def encode(self, text: str | bytes) -> np.ndarray:
        """Returns the ids of the pieces of a text, int32 `[T]`."""
        lines = tokenisation.as_text(text).split("\n")
        parts = []
        for first in range(0, len(lines), _LINES):
            # A newline at the end of a part ends its last line.
            last = first + _LINES >= len(lines)
            part = "\n".join(lines[first : first + _LINES]) + ("" if last else "\n")
            parts.append(self._tables.encode([part]).flat_values.numpy())
        return np.concatenate(parts)

    def decode(self, ids: np.ndarray) -> str:
        """Returns the text of ids `[T]`; bytes that make no character are U+FFFD."""
        return self._tables.decode(ids[np.newaxis]).numpy()[0].decode()


class SubwordPieces(Pieces):
    """Encodes and decodes by a SentencePiece model: `decode(encode(text)) == text`.

    Text is UTF-8; what is not becomes U+FFFD (and under NFKC, compatible characters
    become one). Python and graphs use the same operations of TensorFlow Text.

    Args:
        model: The serialised model, of `train_pieces`.

    Attributes:
        pieces: In id order, U+2581 where they have a blank; first the reserved names,
            then the 256 bytes.
    """

    def __init__(self, model: bytes) -> None:
        self.model = model
        tables = self.graph_tables()
        self._tables, self.pieces = tables, tables.pieces

    def __reduce__(self) -> tuple[Any, ...]:
        # Tables belong to one process.
        return SubwordPieces, (self.model,)

    @property
    def never_in_text(self) -> tuple[int, ...]:
        """Ids that no text has: reserved ones but `<eos>`, and the newline's byte."""
        reserved = self.pieces[: self.pieces.index("<0x00>")]
        never = [i for i, name in enumerate(reserved) if name != EOS]
        return (*never, self.pieces.index(NEWLINE_PIECE))

    def graph_tables(self) -> SubwordTables:
        """Returns a new `tf.Module` with `encode` and `decode`, for a SavedModel."""
        from rlm_tf.data.text.subword_tables import SubwordTables

        return SubwordTables(self.model)


class WordPieces(Pieces):
    r"""Cuts words as BERT does (Devlin et al. 2019, arXiv 1810.04805), by its pieces.

    Text becomes words and punctuation, in lower case and without accents if
    `lower_case`, and words the longest pieces from the left; a word that no pieces make
    is `<unk>`. White space and case are lost. A newline is `<eos>`. With `lower_case`,
    TensorFlow Text also folds compatible characters (`\u00b2` is `2`), which the
    published pieces may have of their own.

    Args:
        pieces: In id order, `##` before those that go on a word; `<unk>` and `<eos>`
            among them.
        lower_case: Whether the pieces are of lower case.
    """

    def __init__(self, pieces: Sequence[str], lower_case: bool) -> None:
        self.pieces = tuple(pieces)
        self.lower_case = lower_case
        self._tables = self.graph_tables()

    def __reduce__(self) -> tuple[Any, ...]:
        # Tables belong to one process.
        return WordPieces, (self.pieces, self.lower_case)

    @property
    def normalises(self) -> bool:
        """True: white space is lost, at least."""
        return True

    @property
    def never_in_text(self) -> tuple[int, ...]:
        """Ids that no text has: in `<>` or `[]`, which are cut, but for `<eos>`.

        `<unk>` is among them, as it should not be drawn.
        """
        return tuple(
            i
            for i, name in enumerate(self.pieces)
            if len(name) > 2 and name[0] + name[-1] in ("<>", "[]") and name != EOS
        )

    def graph_tables(self) -> WordPieceTables:
        """Returns a new `tf.Module` with `encode` and `decode`, for a SavedModel."""
        from rlm_tf.data.text.word_piece_tables import WordPieceTables

        return WordPieceTables(self.pieces, self.lower_case)
