"""The pieces of a SentencePiece model: from text to ids and back, in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rlm_tf.data.text import tokenisation
from rlm_tf.data.text.subwords import NEWLINE_PIECE
from rlm_tf.data.text.tokenisation import EOS

if TYPE_CHECKING:
    from rlm_tf.data.text.subword_tables import SubwordTables

# Lines that are encoded at once.
_LINES = 1 << 14
_LIGATURE = "\ufb01"


class SubwordPieces:
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
        self._tables = self.graph_tables()
        self.pieces: tuple[str, ...] = self._tables.pieces

    def __reduce__(self) -> tuple[Any, ...]:
        # Tables belong to one process.
        return SubwordPieces, (self.model,)

    @property
    def never_in_text(self) -> tuple[int, ...]:
        """Ids that no text has: reserved ones but `<eos>`, and the newline's byte."""
        reserved = self.pieces[: self.pieces.index("<0x00>")]
        never = [i for i, name in enumerate(reserved) if name != EOS]
        return (*never, self.pieces.index(NEWLINE_PIECE))

    @property
    def normalises(self) -> bool:
        """Whether texts come back changed, as compatible characters become one."""
        return self.decode(self.encode(_LIGATURE)) != _LIGATURE

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

    def graph_tables(self) -> SubwordTables:
        """Returns a new `tf.Module` with `encode` and `decode`, for a SavedModel."""
        from rlm_tf.data.text.subword_tables import SubwordTables

        return SubwordTables(self.model)
