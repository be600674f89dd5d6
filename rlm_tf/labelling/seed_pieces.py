"""Where seeds are in documents that are cut into pieces of words."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_option
from rlm_tf.data.text.special_tokens import special_ids
from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.labelling.seed_rule import SeedRule
from rlm_tf.labelling.seed_tokens import lowered, word_spans

Variant = Literal["words", "authors"]
VARIANTS: tuple[Variant, ...] = ("words", "authors")
# What SentencePiece has for a blank, and what goes on a word in BERT's vocabularies.
_BLANK, _GOES_ON = "\u2581", "##"
_NO_TEXT = "\ufffd"
_BYTE, _ASCII = re.compile("<0x([0-9A-F]{2})>"), 128


class SeedPieces(NamedTuple):
    """Places in rows of pieces, as `WordDeletion` needs them.

    Attributes:
        places: bool `[N, T]`, pieces of seeds.
        starts: bool `[N, T]`, pieces that begin a word, or are none of a word.
    """

    places: np.ndarray
    starts: np.ndarray


def seed_pieces(
    rule: SeedRule,
    vocabulary: Vocabulary,
    tokens: npt.ArrayLike,
    labels: npt.ArrayLike | None = None,
    *,
    variant: Variant = "words",
) -> SeedPieces:
    """Returns which pieces of documents are of seeds, and which begin a word.

    Words are those that the rule sees, read from the pieces themselves, so that a
    document that is cut off has the seeds that are left of it.

    Args:
        rule: By words.
        vocabulary: Of an encoder.
        tokens: int `[N, T]`, `TextReader.rows`.
        labels: int `[N]`: only seeds of a document's own label, as published; None:
            those of all classes.
        variant: "words": a seed's occurrences; "authors": any piece that some seed has
            when it stands alone, wherever it is.

    Raises:
        ValueError: If the rule or the vocabulary is another kind, the variant unknown,
            or shapes do not fit.
    """
    name = "seed_pieces"
    check_option(name, "tokenisation of the rule", rule.tokenisation, ("words",))
    check_option(name, "variant", variant, VARIANTS)
    special = set(special_ids(vocabulary))
    rows = np.asarray(tokens)
    own = None if labels is None else np.asarray(labels)
    if rows.ndim != 2 or (own is not None and own.shape != rows.shape[:1]):
        raise ValueError(
            f"{name}: `tokens` must be [N, T] and `labels` [N], found "
            f"{list(rows.shape)} and {None if own is None else list(own.shape)}."
        )
    texts = _texts_of(vocabulary)
    alone = _pieces_of_seeds(rule, vocabulary) if variant == "authors" else None
    places, starts = np.zeros(rows.shape, bool), np.zeros(rows.shape, bool)
    for number, row in enumerate(rows):
        columns = [place for place, own_id in enumerate(row) if own_id not in special]
        starts[number] = True
        if not columns:
            continue
        spans, words, word_of = _words(
            [texts[own_id] for own_id in row[columns].tolist()]
        )
        first = np.ones(len(columns), bool)
        first[1:] = (word_of[1:] < 0) | (word_of[1:] != word_of[:-1])
        starts[number, columns] = first
        label = None if own is None else int(own[number])
        if alone is not None:
            known = set().union(*alone) if label is None else _of(alone, label)
            places[number, columns] = np.isin(row[columns], [*known])
            continue
        for word, size, numbers in rule.occurrences(words):
            classes = {rule.seeds[seed].class_index for seed in numbers}
            if label is None or label in classes:
                begin, end = spans[word][0], spans[word + size - 1][1]
                places[number, columns[begin:end]] = True
    return SeedPieces(places, starts)


def _of(alone: list[set[int]], label: int) -> set[int]:
    return alone[label] if label >= 0 else set()


def _texts_of(vocabulary: Vocabulary) -> list[str]:
    """Returns what pieces look like in a text in lower case, with blanks in front."""
    goes_on = vocabulary.rule.startswith("wordpiece")
    found = []
    for piece in vocabulary.tokens:
        byte = _BYTE.fullmatch(piece)
        if byte is not None:
            code = int(byte[1], 16)
            found.append(chr(code).lower() if code < _ASCII else _NO_TEXT)
        elif goes_on:
            own = piece.removeprefix(_GOES_ON)
            found.append(lowered(own if own != piece else f" {piece}"))
        else:
            found.append(lowered(piece.replace(_BLANK, " ")))
    return found


def _words(
    pieces: list[str],
) -> tuple[list[tuple[int, int]], list[str], np.ndarray]:
    """Returns pieces of each word (first, behind the last), the words, and whose.

    The last is int `[T]`: the first word that a piece has a part of, -1 of symbols.
    """
    ends = np.cumsum([len(piece) for piece in pieces])
    found_spans: list[tuple[int, int]] = []
    words: list[str] = []
    word_of = np.full(len(pieces), -1)
    for word, (first, last) in word_spans("".join(pieces)):
        begin = int(np.searchsorted(ends, first, side="right"))
        end = int(np.searchsorted(ends, last, side="left")) + 1
        own = word_of[begin:end]
        own[own < 0] = len(words)
        found_spans.append((begin, end))
        words.append(word)
    return found_spans, words, word_of


def _pieces_of_seeds(rule: SeedRule, vocabulary: Vocabulary) -> list[set[int]]:
    """Returns the ids of pieces of each class' seeds, each cut by itself."""
    found: list[set[int]] = [set() for _ in rule.class_names]
    never = {*special_ids(vocabulary)}
    for seed in rule.seeds:
        ids = vocabulary.encode(" ".join(seed.tokens)).tolist()
        found[seed.class_index] |= set(ids) - never
    return found
