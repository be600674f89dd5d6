"""The words that a classifier of documents knows, and documents as rows of ids."""

from __future__ import annotations

import collections
import json
import os
import pathlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_integer, check_option
from rlm_tf.command_line.json_files import write_json
from rlm_tf.labelling.seed_rule import SeedRule
from rlm_tf.labelling.seed_tokens import words_of

# Ids of what fills rows up, and of a word that is not in the list.
PADDING, UNKNOWN = 0, 1
_FIRST = 2
_CLASSES = ("own", "all")


class WordList:
    """Words in lower case, cut as `SeedRule` cuts them, with ids from 2 on.

    0 fills rows up, 1 is any other word.

    Args:
        words: In the order of their ids.

    Raises:
        ValueError: If there is none, or one is doubled or no single word.
    """

    def __init__(self, words: Sequence[str]) -> None:
        name = type(self).__name__
        self.words = tuple(words)
        if not self.words:
            raise ValueError(f"{name}: there is no word.")
        self._ids = {word: i for i, word in enumerate(self.words, start=_FIRST)}
        if len(self._ids) < len(self.words):
            counts = collections.Counter(self.words)
            doubled = next(word for word in self.words if counts[word] > 1)
            raise ValueError(f"{name}: the word {doubled!r} appears twice.")
        wrong = next((word for word in self.words if words_of(word) != [word]), None)
        if wrong is not None:
            raise ValueError(f"{name}: {wrong!r} is no single word in lower case.")

    def __len__(self) -> int:
        """Ids, those of padding and unknown words among them."""
        return _FIRST + len(self.words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WordList) and self.words == other.words

    def __hash__(self) -> int:
        return hash(self.words)

    @classmethod
    def build(
        cls, texts: Iterable[str], *, max_size: int = 50_000, min_documents: int = 2
    ) -> WordList:
        """Returns the words of documents, those of most documents first.

        Args:
            texts: The documents to learn from.
            max_size: Words at most.
            min_documents: Documents that a word must be in.

        Raises:
            ValueError: If there is no such word, or a number is out of range.
        """
        check_integer(f"{cls.__name__}.build", "max_size", max_size, 1)
        check_integer(f"{cls.__name__}.build", "min_documents", min_documents, 1)
        counts: collections.Counter[str] = collections.Counter()
        for text in texts:
            counts.update(set(words_of(text)))
        kept = [item for item in counts.items() if item[1] >= min_documents]
        kept.sort(key=lambda item: (-item[1], item[0]))
        if not kept:
            raise ValueError(
                f"{cls.__name__}.build: no word is in {min_documents} documents."
            )
        return cls([word for word, _ in kept[:max_size]])

    # === Documents ===

    def ids_of(self, text: str) -> list[int]:
        """Returns the ids of a document's words."""
        return [self._ids.get(word, UNKNOWN) for word in words_of(text)]

    def rows(self, texts: Sequence[str], length: int) -> np.ndarray:
        """Returns documents as rows of ids, int32 `[N, length]`; longer ones are cut.

        Raises:
            ValueError: If the length is not positive.
        """
        check_integer(f"{type(self).__name__}.rows", "length", length, 1)
        found = np.full([len(texts), length], PADDING, np.int32)
        for row, text in enumerate(texts):
            ids = self.ids_of(text)[:length]
            found[row, : len(ids)] = ids
        return found

    # === Files ===

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the list as a JSON file that `load` reads."""
        write_json(pathlib.Path(path), {"words": list(self.words)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> WordList:
        """Reads a list written by `save`.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If it is damaged.
        """
        try:
            found = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
            return cls(found["words"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is no list of words: {error}") from None


def seed_places(
    rule: SeedRule,
    texts: Sequence[str],
    length: int,
    labels: npt.ArrayLike | None = None,
) -> np.ndarray:
    """Returns where seeds are in the rows of `WordList.rows`, bool `[N, length]`.

    Args:
        rule: By words: under `published` tokens are others than those of rows.
        texts: The documents.
        length: T.
        labels: int `[N]`: only seeds of a document's own label, as published; None:
            those of all classes.

    Raises:
        ValueError: If the rule is another, or there are not as many labels as texts.
    """
    name = "seed_places"
    check_option(name, "tokenisation of the rule", rule.tokenisation, ("words",))
    own = None if labels is None else np.asarray(labels)
    if own is not None and own.shape != (len(texts),):
        raise ValueError(
            f"{name}: {len(texts)} texts need so many labels, found {list(own.shape)}."
        )
    found = np.zeros([len(texts), length], bool)
    for row, text in enumerate(texts):
        for first, size, numbers in rule.occurrences(words_of(text)):
            classes = {rule.seeds[number].class_index for number in numbers}
            if own is None or int(own[row]) in classes:
                found[row, first : first + size] = True
    return found
