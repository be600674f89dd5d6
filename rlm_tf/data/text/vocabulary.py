"""A vocabulary and the tokenisation rule it belongs to."""

from __future__ import annotations

import collections
import operator
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rlm_tf.checks import check_integer
from rlm_tf.data.text import tokenisation
from rlm_tf.data.text.split_text import SplitText, count_tokens
from rlm_tf.data.text.subword_pieces import Pieces, SubwordPieces, WordPieces
from rlm_tf.data.text.subwords import train_pieces
from rlm_tf.data.text.tokenisation import (
    EOS,
    SUBWORD_RULES,
    UNK,
    WORD_PIECE_RULES,
)
from rlm_tf.data.text.vocabulary_file import read_vocabulary, write_vocabulary

if TYPE_CHECKING:
    import tensorflow as tf

    from rlm_tf.data.text.line_tables import LineTables
    from rlm_tf.data.text.vocabulary_tables import VocabularyTables


class Vocabulary:
    """Maps text to token ids and back under one tokenisation rule.

    The rules are described in `rlm_tf.data.text.tokenisation`. `encode` and `decode`
    work in Python, `encode_tensor` and `decode_tensor` in a graph, with equal results
    for every byte string.

    Attributes:
        rule: `whitespace`, `words`, `characters`, `bytes`, `sentencepiece-unigram`,
            `sentencepiece-bpe`, or, of published encoders (`bert_vocabulary`),
            `wordpiece` or `wordpiece-lower`.
        tokens: The tokens in id order. Under `bytes` a token is the character with the
            byte's number, of subwords a piece (see `SubwordPieces`); the newline is
            `<eos>` under every rule.
        eos_id: Id of `<eos>`, the end of a line.
        unk_id: Id of `<unk>`, or None: then unknown tokens are errors. No text has it
            under rules of subwords.
        model: Of subwords, the serialised SentencePiece model; None of others.
    """

    def __init__(
        self, tokens: Sequence[str], rule: str, model: bytes | None = None
    ) -> None:
        """Makes a vocabulary of given tokens; see `build` for one made from text.

        Args:
            tokens: Distinct non-empty tokens in id order, `<eos>` among them.
            rule: The tokenisation rule.
            model: Of subwords, the SentencePiece model whose pieces the tokens are.

        Raises:
            ValueError: If a token is empty, doubled or impossible under the rule, if
                `<eos>` is missing, or if a model is missing, too many or another's.
        """
        tokenisation.check_rule(rule)
        if (rule in SUBWORD_RULES) != (model is not None):
            raise ValueError(
                f"Vocabulary: a SentencePiece model is for the rules "
                f"{', '.join(SUBWORD_RULES)}, and they need one; found "
                f"{'none' if model is None else 'one'} under the rule {rule!r}."
            )
        self.rule = rule
        self.model = model
        self._pieces: Pieces | None = None
        self.tokens = tuple(tokens)
        self._ids = {token: i for i, token in enumerate(self.tokens)}
        if len(self._ids) != len(self.tokens):
            counts = collections.Counter(self.tokens)
            doubled = next(token for token in self.tokens if counts[token] > 1)
            raise ValueError(f"Vocabulary: token {doubled!r} appears twice.")
        if EOS not in self._ids:
            raise ValueError(f"Vocabulary: the tokens must include {EOS}.")
        for number, token in enumerate(self.tokens):
            self._check_token(token)
            try:
                token.encode()
            except UnicodeEncodeError as error:
                raise ValueError(
                    f"Vocabulary: token {number}, {token!r}, has the lone surrogate "
                    f"U+{ord(token[error.start]):04X} at place {error.start}, which is "
                    "half of a character and not text."
                ) from None
        self.eos_id: int = self._ids[EOS]
        self.unk_id: int | None = self._ids.get(UNK)
        if model is not None:
            self._pieces = SubwordPieces(model)
        elif rule in WORD_PIECE_RULES:
            if self.unk_id is None:
                raise ValueError(f"Vocabulary: the rule {rule!r} needs {UNK}.")
            self._pieces = WordPieces(self.tokens, rule == "wordpiece-lower")
        if self._pieces is None:
            self._keys = self._make_keys()
        elif self._pieces.pieces != self.tokens:
            raise ValueError(
                "Vocabulary: the tokens are not the pieces of the SentencePiece model."
            )
        self._tables: VocabularyTables | LineTables | None = None

    def _check_token(self, token: str) -> None:
        special = token in (EOS, UNK)
        single = self.rule in ("characters", "bytes")
        if not token or (single and not special and len(token) != 1):
            kind = "one character" if single else "not empty"
            raise ValueError(f"Vocabulary: a token must be {kind}, found {token!r}.")
        if self.rule == "bytes" and not special and ord(token) > 255:
            raise ValueError(f"Vocabulary: {token!r} is not a byte.")
        if single and token == "\n":
            raise ValueError(f"Vocabulary: the newline must be called {EOS}.")

    def _make_keys(self) -> dict[str, int] | np.ndarray:
        """What `encode` looks tokens up in: a dict, or an array indexed by code."""
        if self.rule == "whitespace":
            return self._ids
        if self.rule == "words":
            keys = dict(self._ids)
            keys.pop(EOS)
            keys["\n"] = self.eos_id
            return keys
        size = 256 if self.rule == "bytes" else 0x110000
        codes = np.full(size, -1 if self.unk_id is None else self.unk_id, np.int32)
        for token, i in self._ids.items():
            if token not in (EOS, UNK):
                codes[ord(token)] = i
        codes[ord("\n")] = self.eos_id
        return codes

    # === Making ===

    @classmethod
    def build(
        cls,
        text: str | bytes | SplitText | Iterable[str | bytes | SplitText],
        rule: str = "words",
        *,
        max_size: int | None = None,
        min_count: int = 1,
        unknown: bool | None = None,
        reserved: Sequence[str] = (UNK, EOS),
        normalisation: str = "identity",
    ) -> Vocabulary:
        """Makes a vocabulary of the tokens of a text, ids by (-frequency, token).

        `<eos>` is always in it. `<unk>` has the frequency of the tokens it replaces.
        Under `bytes` all 256 values are in it, so that nothing is unknown. Under
        `sentencepiece-unigram` and `sentencepiece-bpe` pieces are learnt from the text,
        and nothing is unknown either: `train_pieces` tells more.

        Args:
            text: A text, or several: of training alone. Under `words` and `whitespace`
                also what `SplitText` made of it.
            rule: The tokenisation rule.
            max_size: Largest size, `<eos>` and `<unk>` included; the most frequent
                tokens stay.
            min_count: Tokens that are rarer are left out.
            unknown: Whether `<unk>` is in the vocabulary; None means where tokens were
                left out or the text itself has it.
            reserved: Of subwords: names of the first ids, in order.
            normalisation: Of subwords: `identity`, or `nfkc`.

        Raises:
            ValueError: If an argument is impossible, or does not apply to the rule.
        """
        tokenisation.check_rule(rule)
        texts = [text] if isinstance(text, (str, bytes, SplitText)) else text
        if max_size is not None:
            check_integer("Vocabulary.build", "max_size", max_size, 2)
        if rule in SUBWORD_RULES:
            if min_count != 1 or unknown is not None:
                raise ValueError(
                    f"Vocabulary.build: under the rule `{rule}` nothing is unknown; "
                    "min_count and unknown do not apply."
                )
            whole: list[str | bytes] = []
            for part in texts:
                if isinstance(part, SplitText):
                    part.under(rule)  # which is an error
                else:
                    whole.append(part)
            model = train_pieces(whole, rule, max_size, reserved, normalisation)
            return cls(SubwordPieces(model).pieces, rule, model)
        if rule in WORD_PIECE_RULES:
            raise ValueError(
                f"Vocabulary.build: pieces of the rule `{rule}` are those of a "
                "published encoder; `bert_vocabulary` reads them."
            )
        if tuple(reserved) != (UNK, EOS) or normalisation != "identity":
            raise ValueError(
                "Vocabulary.build: `reserved` and `normalisation` are for the rules "
                f"{', '.join(SUBWORD_RULES)}; found the rule {rule!r}."
            )
        check_integer("Vocabulary.build", "min_count", min_count, 1)
        if rule == "bytes" and (max_size, min_count, unknown) != (None, 1, None):
            raise ValueError(
                "Vocabulary.build: the rule `bytes` has all 256 bytes; max_size, "
                "min_count and unknown do not apply."
            )
        counts = count_tokens(texts, rule)
        unknowns, ends = counts.pop(UNK, 0), counts.pop(EOS, 0)
        least = 0 if rule == "bytes" else min_count
        kept = [item for item in counts.items() if item[1] >= least]
        # By (-count, token); the second sorting keeps the order of the first.
        kept.sort(key=operator.itemgetter(0))
        kept.sort(key=operator.itemgetter(1), reverse=True)
        if max_size is not None:
            room = max_size - 1
            if unknown or (unknown is None and (unknowns or len(counts) > room)):
                room -= 1
            kept = kept[:room]
        left_out = sum(counts.values()) - sum(count for _, count in kept)
        kept.append((EOS, ends))
        if unknown or (unknown is None and (unknowns or left_out)):
            kept.append((UNK, unknowns + left_out))
        kept.sort(key=lambda item: (-item[1], item[0]))
        return cls([token for token, _ in kept], rule)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the vocabulary as a UTF-8 text file that `load` reads."""
        write_vocabulary(path, self.rule, list(self.tokens), self.model)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """Reads a vocabulary written by `save`.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If it is malformed; names file and line.
        """
        rule, tokens, model = read_vocabulary(path)
        try:
            return cls(tokens, rule, model)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    # === Python ===

    def __len__(self) -> int:
        return len(self.tokens)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Vocabulary)
            and self.rule == other.rule
            and self.tokens == other.tokens
            and self.model == other.model
        )

    def __hash__(self) -> int:
        return hash((self.rule, self.tokens, self.model))

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens, rule={self.rule!r})"

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_tables": None}  # tables belong to one process

    @property
    def never_in_text(self) -> tuple[int, ...]:
        """Ids that no text has, so that none should be drawn either: of subwords."""
        return () if self._pieces is None else self._pieces.never_in_text

    @property
    def normalises(self) -> bool:
        """Whether texts come back changed, as compatible characters become one."""
        return self._pieces is not None and self._pieces.normalises

    def id_of(self, token: str) -> int:
        """Returns the id of one token, that of `<unk>` if it is unknown.

        Raises:
            ValueError: If it is unknown and the vocabulary has no `<unk>`.
        """
        found = self._ids.get(token, self.unk_id)
        if found is None:
            raise ValueError(self._unknown_message(token))
        return found

    def encode(self, text: str | bytes | SplitText) -> np.ndarray:
        """Returns the ids of the tokens of a text, int32 `[T]`.

        Args:
            text: The text, or what `SplitText` made of it under this rule.

        Raises:
            ValueError: If a token is unknown and the vocabulary has no `<unk>`; names
                the token and its line. If the text is split under another rule.
        """
        if isinstance(text, SplitText):
            text.under(self.rule)
        elif self._pieces is not None:
            return self._pieces.encode(text)
        if isinstance(self._keys, np.ndarray):
            assert not isinstance(text, SplitText)
            ids = self._keys[tokenisation.character_codes(text, self.rule)]
        else:
            if not isinstance(text, SplitText):
                text = SplitText(text, self.rule)
            get, default = self._keys.get, -1 if self.unk_id is None else self.unk_id
            ids = text.ids(lambda token: get(token, default))
        if self.unk_id is None and ids.size and ids.min() < 0:
            self._raise_unknown(text, ids)
        return ids

    def _raise_unknown(self, text: str | bytes | SplitText, ids: np.ndarray) -> None:
        first = int(np.argmax(ids < 0))
        line = int(np.count_nonzero(ids[:first] == self.eos_id)) + 1
        if isinstance(text, SplitText):
            token = text.tokens[text.numbers[first]]
        else:
            token = chr(tokenisation.character_codes(text, self.rule)[first])
        raise ValueError(f"line {line}: {self._unknown_message(token)}")

    def _unknown_message(self, token: str) -> str:
        return (
            f"unknown token {token!r}: it is not among the {len(self)} tokens of the "
            f"vocabulary, which has no {UNK}."
        )

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """Returns readable text of token ids.

        `<eos>` becomes a newline. Under `whitespace` and `words` tokens are joined by
        blanks; under `words` there is none before closing and after opening
        punctuation. Encoding the result gives the ids again (unless `<unk>` is among
        them, which only the rule `whitespace` reads back).

        Args:
            ids: Integers `[T]`.

        Raises:
            ValueError: If an id is not in the vocabulary.
        """
        ids = np.asarray(ids, dtype=np.int64)
        if ids.ndim != 1:
            raise ValueError(
                f"Vocabulary.decode: `ids` must have axes [T], found {ids.shape}."
            )
        if ids.size and not 0 <= ids.min() <= ids.max() < len(self):
            wrong = ids[(ids < 0) | (ids >= len(self))][0]
            raise ValueError(
                f"Vocabulary.decode: id {wrong} is outside [0, {len(self)})."
            )
        if self._pieces is not None:
            return self._pieces.decode(ids)
        surfaces = [self.surface(i) for i in ids]
        if self.rule == "bytes":
            parts = (s.encode("latin-1") for s in surfaces)
            return tokenisation.as_text(b"".join(parts))
        return tokenisation.join_tokens(surfaces, self.rule)

    def surface(self, token_id: int) -> str:
        """Returns what one token looks like in a text: `<eos>` is a newline."""
        return tokenisation.surface(self.tokens[token_id])

    # === In a graph ===

    def graph_tables(self) -> VocabularyTables | LineTables:
        """Returns a new `tf.Module` with `encode` and `decode`, for a SavedModel."""
        if self._pieces is not None:
            return self._pieces.graph_tables()
        from rlm_tf.data.text.vocabulary_tables import VocabularyTables

        return VocabularyTables(self.tokens, self.rule)

    def _own_tables(self) -> VocabularyTables | LineTables:
        if self._tables is None:
            self._tables = self.graph_tables()
        return self._tables

    def encode_tensor(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """`encode` for a string tensor `[N]`; returns int32 ids `[N, (T)]`."""
        return self._own_tables().encode(strings)

    def decode_tensor(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """`decode` for ids `[..., T]`; returns UTF-8 strings `[...]`."""
        return self._own_tables().decode(ids)
