"""A rule that labels texts by seed words."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse

from rlm_tf.checks import check_integer, check_option
from rlm_tf.labelling.seed_tokens import TOKENISATIONS, lowered, tokens_of

Tokenisation = Literal["words", "published"]
Ties = Literal["abstain", "first", "random"]
TIES: tuple[Ties, ...] = ("abstain", "first", "random")
_PREFIX = "*"


class Seed(NamedTuple):
    """A seed of a class.

    Attributes:
        class_index: Of its class, in `SeedRule.class_names`.
        text: As it was given.
        tokens: What it is compared with; empty: it can match nothing.
        is_prefix: Whether the last token is the beginning of a word.
    """

    class_index: int
    text: str
    tokens: tuple[str, ...]
    is_prefix: bool


class Matches(NamedTuple):
    """What a rule says of N texts.

    Attributes:
        labels: int32 `[N]`, the class with most occurrences; -1: none.
        counts: int32 `[N, C]`, occurrences of each class' seeds.
        tied: bool `[N]`, texts in which several classes have most.
        hits: CSR int32 `[N, S]`, occurrences of each of `SeedRule.seeds`.
    """

    labels: np.ndarray
    counts: np.ndarray
    tied: np.ndarray
    hits: scipy.sparse.csr_matrix


class SeedRule:
    """Labels a text by the class whose seed words occur most often (Dong 2025, 3.2).

    `words` cuts texts and seeds into words in lower case, so that a seed may be a
    phrase (`match point`, `same-sex`, which is two words) or, with a star, the
    beginning of a word (`tax*`). Texts are read from the left; at each place the
    longest seed counts, and reading goes on behind it. Of several that are as long each
    counts, for each class once. `published` is the rule of the released code: tokens
    between white space, without ASCII punctuation, and seeds as they are, so that one
    with punctuation, white space or capitals matches nothing.

    Args:
        seeds: Seeds by class.
        tokenisation: "words" or "published".
        ties: Texts in which several classes have most have no label ("abstain"), the
            first class' in the order of `class_names` ("first", as published), or that
            of one of them, drawn by the seed and the text ("random").
        seed: Of such draws.

    Attributes:
        class_names: Sorted by code point.
        seeds: All seeds, classes in the order of `class_names`.

    Raises:
        ValueError: If there are fewer than two classes, a class has no seed, a seed is
            no text, or an option is unknown.
    """

    def __init__(
        self,
        seeds: Mapping[str, Sequence[str]],
        *,
        tokenisation: Tokenisation = "words",
        ties: Ties = "abstain",
        seed: int = 0,
    ) -> None:
        name = type(self).__name__
        check_option(name, "tokenisation", tokenisation, TOKENISATIONS)
        check_option(name, "ties", ties, TIES)
        check_integer(name, "seed", seed, 0)
        if len(seeds) < 2:
            raise ValueError(
                f"{name}: `seeds` must have two classes at least, found "
                f"{', '.join(map(repr, seeds)) or 'none'}."
            )
        if not all(isinstance(own, str) and own for own in seeds):
            raise ValueError(f"{name}: names of classes must be texts, and not empty.")
        self.class_names = tuple(sorted(seeds))
        self.tokenisation = tokenisation
        self.ties = ties
        self.seed = seed
        self.seeds = tuple(
            seed
            for index, own in enumerate(self.class_names)
            for seed in self._given(index, own, seeds[own])
        )
        # By first word, longest first; prefixes of first words apart.
        self._by_first: dict[str, list[int]] = {}
        self._by_prefix: dict[int, dict[str, list[int]]] = {}
        order = sorted(range(len(self.seeds)), key=lambda i: -len(self.seeds[i].tokens))
        for i in order:
            own_tokens, is_prefix = self.seeds[i].tokens, self.seeds[i].is_prefix
            if not own_tokens:
                continue
            if is_prefix and len(own_tokens) == 1:
                first = own_tokens[0]
                by_text = self._by_prefix.setdefault(len(first), {})
                by_text.setdefault(first, []).append(i)
            else:
                self._by_first.setdefault(own_tokens[0], []).append(i)

    def _given(self, index: int, own: str, texts: Sequence[str]) -> list[Seed]:
        """Returns the seeds of a class; those that match the same are one."""
        name = type(self).__name__
        is_list = isinstance(texts, Sequence) and not isinstance(texts, str)
        if not is_list or not all(isinstance(text, str) for text in texts):
            raise ValueError(
                f"{name}: seeds of the class {own!r} must be a list of texts, found "
                f"{texts!r}."
            )
        if not any(text.strip() for text in texts):
            raise ValueError(f"{name}: the class {own!r} has no seed.")
        found: dict[tuple[object, bool], Seed] = {}
        for text in texts:
            seed = self._seed(index, text)
            found.setdefault((seed.tokens or text, seed.is_prefix), seed)
        return list(found.values())

    def _seed(self, index: int, text: str) -> Seed:
        if self.tokenisation == "published":
            # Tokens have neither capitals nor what would be cut from it.
            cut = tokens_of(text, "published")
            lives = text == text.lower() and cut == [lowered(text)]
            return Seed(index, text, tuple(cut) if lives else (), False)
        is_prefix = text.rstrip().endswith(_PREFIX)
        return Seed(index, text, tuple(tokens_of(text, "words")), is_prefix)

    @property
    def dead_seeds(self) -> tuple[Seed, ...]:
        """Seeds that can match nothing, whatever the texts are."""
        return tuple(seed for seed in self.seeds if not seed.tokens)

    @property
    def shared_seeds(self) -> dict[str, tuple[str, ...]]:
        """Seeds that several classes have, and which."""
        classes: dict[str, list[str]] = {}
        for seed in self.seeds:
            if seed.tokens:
                text = " ".join(seed.tokens) + (_PREFIX if seed.is_prefix else "")
                own = self.class_names[seed.class_index]
                classes.setdefault(text, []).append(own)
        return {
            text: tuple(dict.fromkeys(names))
            for text, names in classes.items()
            if len(set(names)) > 1
        }

    # === Matching ===

    def occurrences(self, tokens: Sequence[str]) -> list[tuple[int, int, list[int]]]:
        """Returns where seeds occur in a text: (first token, tokens, their numbers).

        Args:
            tokens: Of the text, in order, as this rule cuts it.
        """
        found = []
        behind = 0
        for place in self._places(tokens):
            # Within the seed before.
            if place < behind:
                continue
            numbers = self._at(tokens, place)
            if numbers:
                length = len(self.seeds[numbers[0]].tokens)
                found.append((place, length, numbers))
                behind = place + length
        return found

    def _places(self, tokens: Sequence[str]) -> list[int]:
        """Returns where the first words of seeds are."""
        firsts = self._by_first
        if not self._by_prefix:
            return [i for i, token in enumerate(tokens) if token in firsts]
        starts = [*self._by_prefix.items()]
        return [
            i
            for i, token in enumerate(tokens)
            if token in firsts or any(token[:n] in by_text for n, by_text in starts)
        ]

    def _at(self, tokens: Sequence[str], place: int) -> list[int]:
        """Returns the longest seeds that begin at a place."""
        token = tokens[place]
        candidates = self._by_first.get(token, ())
        found: list[int] = []
        longest = 0
        for i in candidates:
            seed = self.seeds[i]
            length = len(seed.tokens)
            if length < longest:
                break
            own = tokens[place : place + length]
            if len(own) < length or tuple(own[:-1]) != seed.tokens[:-1]:
                continue
            last = seed.tokens[-1]
            if own[-1] == last or (seed.is_prefix and own[-1].startswith(last)):
                found.append(i)
                longest = length
        if longest <= 1:
            for size, by_text in self._by_prefix.items():
                found += by_text.get(token[:size], ())
        return found

    def match(self, texts: Iterable[str]) -> Matches:
        """Labels texts.

        Args:
            texts: N texts.

        Raises:
            ValueError: If it is one text.
        """
        if isinstance(texts, str | bytes):
            raise ValueError(
                f"{type(self).__name__}.match: `texts` must be a list, found one text."
            )
        rows: list[int] = []
        columns: list[int] = []
        cells: list[tuple[int, int]] = []
        keys: list[bytes] = []
        number = 0
        for text in texts:
            tokens = tokens_of(text, self.tokenisation)
            for _, _, numbers in self.occurrences(tokens):
                rows += [number] * len(numbers)
                columns += numbers
                classes = {self.seeds[i].class_index for i in numbers}
                cells += [(number, own) for own in classes]
            if self.ties == "random":
                keys.append(text.encode("utf-8", "surrogatepass"))
            number += 1
        hits = scipy.sparse.csr_matrix(
            (np.ones(len(rows), np.int32), (rows, columns)),
            shape=(number, len(self.seeds)),
        )
        counts = np.zeros([number, len(self.class_names)], np.int32)
        np.add.at(counts, tuple(np.array(cells, np.int64).reshape(-1, 2).T), 1)
        labels, tied = self._labels(counts, keys)
        return Matches(labels, counts, tied, hits)

    def _labels(
        self, counts: np.ndarray, keys: Sequence[bytes]
    ) -> tuple[np.ndarray, np.ndarray]:
        most = counts.max(axis=1, initial=0)
        best = (counts == most[:, np.newaxis]) & (most > 0)[:, np.newaxis]
        tied = best.sum(axis=1) > 1
        labels = np.where(most > 0, counts.argmax(axis=1), -1).astype(np.int32)
        if self.ties == "abstain":
            labels[tied] = -1
        elif self.ties == "random":
            for row in np.flatnonzero(tied).tolist():
                choices = np.flatnonzero(best[row])
                key = b"%d:%b" % (self.seed, keys[row])
                drawn = hashlib.blake2b(key, digest_size=8).digest()
                labels[row] = choices[int.from_bytes(drawn, "big") % len(choices)]
        return labels, tied
