"""A vocabulary of subword pieces, which leaves no text of any language unknown."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rlm_tf.data.text import tokenisation
from rlm_tf.data.text.subwords import NEWLINE_PIECE
from rlm_tf.data.text.tokenisation import EOS, SUBWORD_RULES, UNK
from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.data.text.vocabulary_file import write_vocabulary

if TYPE_CHECKING:
    from rlm_tf.data.text.subword_tables import SubwordTables

# Lines that are encoded at once.
_LINES = 1 << 14


class SubwordVocabulary(Vocabulary):
    """Maps text to ids of subword pieces and back: `decode(encode(text)) == text`.

    Text is UTF-8; what is not becomes U+FFFD (and under NFKC, compatible characters
    become one). Python and graphs use the same operations of TensorFlow Text.

    Attributes:
        rule: `sentencepiece-unigram` or `sentencepiece-bpe`.
        tokens: The pieces in id order, U+2581 where they have a blank; first the
            reserved names, then the 256 bytes.
        eos_id: Id of `<eos>`, the end of a line.
        unk_id: Id of `<unk>`. No text has it, as every byte has a piece.
        model: The serialised SentencePiece model.
    """

    def __init__(self, model: bytes, rule: str) -> None:
        """Makes the vocabulary of a model; `Vocabulary.build` trains one.

        Raises:
            ValueError: If the rule is none of subwords, or `model` is not a model of
                `Vocabulary.build`.
        """
        if rule not in SUBWORD_RULES:
            raise ValueError(
                f"rule must be one of {', '.join(SUBWORD_RULES)}; found {rule!r}."
            )
        self.rule = rule
        self.model = model
        self._tables = self.graph_tables()
        self.tokens = self._tables.pieces
        self._ids = {token: i for i, token in enumerate(self.tokens)}
        self.eos_id = self._ids[EOS]
        self.unk_id = self._ids[UNK]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SubwordVocabulary) and (
            (self.rule, self.model) == (other.rule, other.model)
        )

    def __hash__(self) -> int:
        return hash((self.rule, self.model))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["model"], state["rule"])  # type: ignore[misc]

    @property
    def never_in_text(self) -> tuple[int, ...]:
        """Ids that no text has: reserved ones but `<eos>`, and the newline's byte."""
        first_byte = self._ids["<0x00>"]
        reserved = [i for i in range(first_byte) if i != self.eos_id]
        return (*reserved, self._ids[NEWLINE_PIECE])

    @property
    def normalises(self) -> bool:
        """Whether texts come back changed, as compatible characters become one."""
        ligature = "\ufb01"
        return self.decode(self.encode(ligature)) != ligature

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the vocabulary as a text file that `Vocabulary.load` reads."""
        model = base64.b64encode(self.model).decode()
        write_vocabulary(path, self.rule, list(self.tokens), model)

    def encode(self, text: str | bytes) -> np.ndarray:
        """Returns the ids of the pieces of a text, int32 `[T]`."""
        lines = tokenisation.as_text(text).split("\n")
        parts = []
        for first in range(0, len(lines), _LINES):
            # A newline at the end of a part ends its last line.
            last = first + _LINES >= len(lines)
            part = "\n".join(lines[first : first + _LINES]) + ("" if last else "\n")
            parts.append(self._own_tables().encode([part]).flat_values.numpy())
        return np.concatenate(parts)

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """Returns the text of ids; `<eos>` is a newline.

        Bytes that make no character become U+FFFD.

        Args:
            ids: Integers `[T]`.

        Raises:
            ValueError: If an id is not in the vocabulary.
        """
        ids = self._checked_ids(ids)
        return self._own_tables().decode(ids[np.newaxis]).numpy()[0].decode()

    def graph_tables(self) -> SubwordTables:
        """Returns a new `tf.Module` with `encode` and `decode`, for a SavedModel."""
        from rlm_tf.data.text.subword_tables import SubwordTables

        return SubwordTables(self.model)
