"""What is measured: texts, corpora, and what models say, as streams of words."""

from __future__ import annotations

import collections
import hashlib
import math
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.command_line.quiet import native_silence
from rlm_tf.commands.information.settings import CoherenceSettings, vocabulary_of
from rlm_tf.commands.training.reading import read_text
from rlm_tf.commands.using import load_served
from rlm_tf.data import Vocabulary, load_corpus
from rlm_tf.data.text.tokenisation import EOS, SUBWORD_RULES
from rlm_tf.file_errors import one_line
from rlm_tf.generation import generate
from rlm_tf.loading import load_model

# Tokens of a sample where there is no text to be like.
_TOKENS = 200_000
# Rows that a model says at once, and tokens of a row; a text is one row behind another.
_MOST_ROWS, _ROW = 64, 10_000
# Rounds of sampling that may yield nothing but ends of lines.
_MOST_ROUNDS = 100
_STOPS = frozenset(".!?\u2026\u3002\uff01\uff1f")


class Words(NamedTuple):
    """A text as words.

    Attributes:
        name: As it was given.
        ids: int `[T]`, places in `names`.
        names: The words.
        ends: bool `[T]`, words that end a sentence.
    """

    name: str
    ids: np.ndarray
    names: list[str]
    ends: np.ndarray

    def first(self, number: int) -> Words:
        """Returns the first so many words."""
        return self._replace(ids=self.ids[:number], ends=self.ends[:number])

    def digest(self) -> str:
        """Returns what tells this text from others."""
        found = hashlib.sha256("\n".join(self.names).encode())
        found.update(np.ascontiguousarray(self.ids, np.int64).tobytes())
        return found.hexdigest()


def read_sources(settings: CoherenceSettings) -> Iterator[Words]:
    """Gives what the settings name; models say as much as the shortest text has.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If one cannot be read, or a model says nothing.
    """
    lengths = []
    for path in settings.text:
        found = _of_text(path, read_text(path), settings)
        lengths.append(len(found.ids))
        yield found
    for name in settings.corpus:
        found = _of_corpus(name, settings)
        lengths.append(len(found.ids))
        yield found
    number = settings.tokens or min(lengths, default=_TOKENS)
    for path in settings.saved_model:
        yield _served(path, load_saved_model(path), number, settings)
    for path in settings.model:
        if pathlib.Path(path).is_dir():
            yield _served(path, load_served(path, "rlm_tf coherence"), number, settings)
        else:
            yield _of_model(path, number, settings)


def load_saved_model(path: str) -> Any:
    """Returns a SavedModel that says texts.

    Raises:
        ValueError: If it cannot be loaded, or does not.
    """
    # Registers the operations of subwords.
    import tensorflow_text  # noqa: F401

    try:
        with native_silence():
            loaded = tf.saved_model.load(path)
    except (OSError, tf.errors.OpError, KeyError, AttributeError) as error:
        raise ValueError(
            f"--saved_model={path} could not be loaded: {one_line(error)}."
        ) from error
    if not hasattr(loaded, "generate"):
        raise ValueError(
            f"--saved_model={path} has no function `generate`; expected what "
            "`export_language_model` or `rlm_tf export` writes."
        )
    return loaded


# === Streams of words ===


def _of_ids(
    name: str, ids: np.ndarray, vocabulary: Vocabulary, settings: CoherenceSettings
) -> Words:
    names = list(vocabulary.tokens)
    is_line_end = ids == vocabulary.eos_id
    stops = np.array([_STOPS.issuperset(word) for word in names])
    ends = stops[ids]
    if not np.any(ends):
        # Lines are sentences; the word before the end of one ends it.
        ends = np.append(is_line_end[1:], False) & ~is_line_end
    if settings.line_ends:
        return Words(name, ids, names, ends | is_line_end)
    kept = ~is_line_end
    return Words(name, ids[kept], names, ends[kept])


def _of_text(name: str, text: bytes | str, settings: CoherenceSettings) -> Words:
    vocabulary = Vocabulary.build(text, settings.rule)
    return _of_ids(name, vocabulary.encode(text), vocabulary, settings)


def _of_corpus(name: str, settings: CoherenceSettings) -> Words:
    folder = None if settings.data_dir is None else pathlib.Path(settings.data_dir)
    corpus = load_corpus(name, folder)
    return _of_ids(name, corpus.train, corpus.vocabulary, settings)


# === Models ===


def _served(name: str, loaded: Any, number: int, settings: CoherenceSettings) -> Words:
    """Returns what a SavedModel says, read as a text is."""
    rows, each = _rows(number)

    def say(seed: int) -> str:
        answer = loaded.generate(
            tf.fill([rows], ""), each, 1.0, 0, 1.0, 0.0, 1.0, 0.0, seed
        )
        said = [text.decode("utf-8", "replace") for text in answer["text"].numpy()]
        return "\n".join(said)

    texts: list[str] = []
    for turn in range(_MOST_ROUNDS):
        texts.append(say(settings.seed + turn))
        found = _of_text(name, "\n".join(texts), settings)
        if len(found.ids) >= number:
            return found.first(number)
    raise ValueError(f"{name} says nothing but ends of lines.")


def _of_model(path: str, number: int, settings: CoherenceSettings) -> Words:
    """Returns what a `.keras` file says."""
    model = load_model(path, compile=False)
    with native_silence():
        vocabulary = Vocabulary.load(vocabulary_of(settings, path))
    rows, each = _rows(number)
    prompts = tf.fill([rows, 1], vocabulary.eos_id)

    @tf.function
    def say(seed: tf.Tensor) -> tf.Tensor:
        said = generate(
            model, prompts, each, seed=seed, context_length=settings.context_length
        )
        return said.flat_values

    streams: list[np.ndarray] = []
    for turn in range(_MOST_ROUNDS):
        streams.append(say(tf.constant(settings.seed + turn, tf.int64)).numpy())
        ids = np.concatenate(streams)
        if vocabulary.rule in SUBWORD_RULES:
            found = _of_text(path, vocabulary.decode(ids), settings)
        else:
            found = _of_ids(path, ids, vocabulary, settings)
        if len(found.ids) >= number:
            return found.first(number)
    raise ValueError(f"--model={path} says nothing but {EOS}.")


def _rows(number: int) -> tuple[int, int]:
    """Returns how many rows of how many tokens are said at once.

    A tenth more than words are wanted: ends of lines may not count.
    """
    wanted = math.ceil(1.1 * number) + 10
    rows = min(_MOST_ROWS, math.ceil(wanted / _ROW))
    return rows, min(_ROW, math.ceil(wanted / rows))


# === One vocabulary for all ===


class Streams(NamedTuple):
    """Texts of one length in one vocabulary.

    Attributes:
        names: Of the texts.
        tokens: int32 `[T]` of each.
        ends: bool `[T]` of each, tokens that end a sentence.
        num_words: Words that are told apart.
        unknown: Share of the tokens that are none of them.
        lengths: Of the texts before they were cut.
    """

    names: list[str]
    tokens: list[np.ndarray]
    ends: list[np.ndarray]
    num_words: int
    unknown: float
    lengths: list[int]


def of_one_length(sources: Sequence[Words], max_words: int) -> Streams:
    """Cuts texts to the shortest, and gives words of all of them one set of ids.

    What the estimate needs is equal lengths: it grows with a text.
    """
    lengths = [len(source.ids) for source in sources]
    cut = [source.first(min(lengths)) for source in sources]
    counts: collections.Counter[str] = collections.Counter()
    for source in cut:
        numbers = np.bincount(source.ids, minlength=len(source.names))
        counts.update(
            {source.names[place]: int(numbers[place]) for place in numbers.nonzero()[0]}
        )
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    kept = ranked if len(ranked) <= max_words else ranked[: max_words - 1]
    places = {word: place for place, word in enumerate(kept)}
    rest = len(kept)
    tokens = [
        np.array([places.get(word, rest) for word in source.names], np.int32)[
            source.ids
        ]
        for source in cut
    ]
    total = sum(len(stream) for stream in tokens)
    outside = sum(int(np.count_nonzero(stream == rest)) for stream in tokens)
    return Streams(
        [source.name for source in cut],
        tokens,
        [source.ends for source in cut],
        len(kept),
        outside / max(total, 1),
        lengths,
    )


def shuffled(tokens: np.ndarray, ends: np.ndarray, what: str, seed: int) -> np.ndarray:
    """Returns a text with its words, or its sentences, in random order.

    Args:
        tokens: `[T]`.
        ends: bool `[T]`.
        what: "words" or "sentences".
        seed: Of the order.
    """
    rng = np.random.default_rng(seed)
    if what == "words":
        return rng.permutation(tokens)
    pieces = np.split(tokens, np.flatnonzero(ends[:-1]) + 1)
    order = rng.permutation(len(pieces))
    return np.concatenate([pieces[place] for place in order])
