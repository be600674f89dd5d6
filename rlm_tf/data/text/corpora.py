"""Corpora for language modelling, by name or from a user's own text files."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import logging
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from rlm_tf.data.text import text_files
from rlm_tf.data.text.corpus_summary import CorpusSummary, SplitSizes, summarise
from rlm_tf.data.text.published_corpora import PUBLISHED, SPLITS, PublishedCorpus
from rlm_tf.data.text.python_docs import python_docs
from rlm_tf.data.text.split_text import SplitText, count_tokens
from rlm_tf.data.text.tokenisation import EOS, SUBWORD_RULES, UNK, check_rule
from rlm_tf.data.text.vocabulary import Vocabulary

PYTHON_DOCS = "python-docs"
DATA_DIR_VARIABLE = "RLM_DATA_DIR"

_LOGGER = logging.getLogger(__name__)

Path = str | os.PathLike[str]


@dataclasses.dataclass(frozen=True, eq=False)
class Corpus:
    """A text in three splits, as token ids.

    Attributes:
        name: Name of the corpus, or the path of the user's file.
        train: int32 `[N]`, one `<eos>` for every line of the text.
        valid: The same for validation.
        test: The same for the test.
        vocabulary: What the ids mean.
        num_bytes: UTF-8 bytes of the text of each split as it was loaded, for bits per
            byte, which compare vocabularies; of what a vocabulary that normalises makes
            of it. None if it was not loaded.
        num_words: Words between ASCII blanks of each split, likewise.
        summary: What the corpus is like under its vocabulary, likewise.
    """

    name: str
    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray
    vocabulary: Vocabulary
    num_bytes: SplitSizes | None = None
    num_words: SplitSizes | None = None
    summary: CorpusSummary | None = None

    def sha256(self) -> str:
        """Returns a digest of the texts and the vocabulary."""
        digest = hashlib.sha256("\n".join(self.vocabulary.tokens).encode())
        for tokens in (self.train, self.valid, self.test):
            digest.update(np.int64(len(tokens)).tobytes())
            digest.update(np.ascontiguousarray(tokens, np.int32).tobytes())
        return digest.hexdigest()


def corpus_names() -> tuple[str, ...]:
    """Returns the names that `load_corpus` knows."""
    return (PYTHON_DOCS, *PUBLISHED)


def load_corpus(
    name: str = PYTHON_DOCS, data_dir: Path | None = None, *, download: bool = False
) -> Corpus:
    """Loads a corpus by name.

    `python-docs` is embedded. The published corpora are read from their standard files
    in `data_dir`, or in a folder there (`ptb`, `wikitext-2`, `tinyshakespeare`, ...),
    plain, `.gz` or `.zip`, and checked against their published counts. enwik8 and text8
    are cut into 90 / 5 / 5 million; tiny-shakespeare, for which the literature has no
    split, into 90 / 5 / 5 % of its characters. Of the Multilingual Wikipedia Corpus
    (`mwc-en` and `mwc-fi`, the larger form) no counts are published, so none are
    checked.

    Args:
        name: One of `corpus_names()`, or the path of a text file (see
            `load_text_corpus`).
        data_dir: Folder with the data sets; None means the environment variable
            `RLM_DATA_DIR`.
        download: Whether to fetch a missing file into `data_dir`. Possible where the
            publisher has a stable address and a checksum is known: tiny-shakespeare.

    Raises:
        FileNotFoundError: If the files are missing; says where it looked and how to get
            them. Also if `name` looks like a path and no file is there.
        ValueError: If the name is unknown, or a file is empty, damaged, badly encoded
            or not the published one; names the file, and the line where there is one.
    """
    if name == PYTHON_DOCS:
        texts = {split: text.encode() for split, text in python_docs().items()}
        vocabulary = Vocabulary.build(texts["train"], "words", min_count=2)
        return encoded_corpus(
            PYTHON_DOCS, texts, vocabulary, dict.fromkeys(SPLITS, name)
        )
    if name in PUBLISHED:
        folder = data_dir or os.environ.get(DATA_DIR_VARIABLE)
        return _load_published(name, folder, download)
    if os.path.isfile(name):
        return load_text_corpus(name)
    if os.path.dirname(name) or os.path.splitext(name)[1]:
        kind = "a folder" if os.path.isdir(name) else "not there"
        raise FileNotFoundError(
            f"the text file {name!r} is {kind}; expected the path of a text file, or "
            f"one of {', '.join(corpus_names())}."
        )
    raise ValueError(
        f"unknown corpus {name!r}: expected one of {', '.join(corpus_names())}, or the "
        "path of an existing text file."
    )


def load_text_corpus(
    train: Path,
    valid: Path | None = None,
    test: Path | None = None,
    *,
    rule: str = "words",
    min_count: int | None = None,
    max_size: int | None = None,
) -> Corpus:
    """Loads a user's own text.

    One file is cut into its first 90 %, the next 5 % and the last 5 %, at line ends
    where that leaves something for every part. The vocabulary is that of the training
    part, with `<unk>` for whatever else occurs (under `bytes` nothing is unknown).

    Args:
        train: A UTF-8 text file, plain, `.gz` or `.zip` (any file under `bytes`).
        valid: File of the validation text; with `test`, or neither.
        test: File of the test text.
        rule: Tokenisation rule: whitespace, words, characters, bytes,
            sentencepiece-unigram or sentencepiece-bpe.
        min_count: Rarer tokens become `<unk>`; by default 2 for words, 1 for
            characters. Not of bytes or subwords, of which nothing is unknown.
        max_size: Largest size of the vocabulary; of subwords by default a piece for
            each 120 bytes, 500 to 16,000.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a file is empty, damaged, badly encoded or too short to be cut,
            or has no token that is frequent enough to be learnt; names the file, and
            the line where there is one.
    """
    check_rule(rule)
    if (valid is None) != (test is None):
        raise ValueError("load_text_corpus: give both `valid` and `test`, or neither.")
    paths = dict.fromkeys(SPLITS, str(train))
    if valid is not None and test is not None:
        paths |= {"valid": str(valid), "test": str(test)}
        texts = {split: _read(paths[split], rule) for split in SPLITS}
    else:
        whole = _read(train, rule)
        parts = text_files.cut(whole, (0.9, 0.95), at_lines=True)
        if not all(parts):
            parts = text_files.cut(whole, (0.9, 0.95), at_lines=False)
        texts = dict(zip(SPLITS, parts, strict=True))
        _check_parts(texts, train, rule)
    options: dict[str, Any] = {"min_count": min_count, "max_size": max_size}
    if rule != "bytes" and rule not in SUBWORD_RULES:
        options["unknown"] = True
        if min_count is None:
            options["min_count"] = 1 if rule == "characters" else 2
    given = {name: value for name, value in options.items() if value is not None}
    split_texts = _split(texts, rule)
    vocabulary = Vocabulary.build(
        split_texts.get("train", texts["train"]), rule, **given
    )
    if {EOS, UNK}.issuperset(vocabulary.tokens):
        least = given.get("min_count", 1)
        times = f"{least} times" if least > 1 else "at all"
        raise ValueError(
            f"{paths['train']}: the training text has nothing to learn from: under the "
            f"rule {rule!r}, no token but line ends occurs {times} in it. Give more "
            "text" + (", or a lower `min_count`." if least > 1 else ".")
        )
    corpus = encoded_corpus(
        str(train), texts, vocabulary, paths, split_texts=split_texts
    )
    if corpus.summary is not None:
        for line in corpus.summary.warnings():
            _LOGGER.warning("%s: %s", train, line)
    return corpus


def _check_parts(texts: dict[str, bytes], path: Path, rule: str) -> None:
    """Raises ValueError if a text was too short to be cut into its splits."""
    for split, text in texts.items():
        if rule in SUBWORD_RULES and text:
            continue
        # The beginning tells, as a rule, and costs nothing.
        if any(count_tokens([part], rule) for part in (text[:1000], text)):
            continue
        whole = b"".join(texts.values())
        lines = whole.count(b"\n") + (not whole.endswith(b"\n"))
        raise ValueError(
            f"{path}: a text of {lines} line{'s' * (lines > 1)} and {len(whole)} bytes "
            "is too short to be cut into 90 % for training, 5 % for validation and 5 % "
            f"for the test: nothing is left for the {split} split. Give more text, or "
            "files of their own as `valid` and `test`."
        )


def _read(path: Path, rule: str) -> bytes:
    data = text_files.read_bytes(path)
    if rule == "bytes":
        return data
    data = text_files.check_text(data, path)
    if rule != "characters" and data and not data.endswith(b"\n"):
        data += b"\n"
    return data


def _split(texts: Mapping[str, bytes], rule: str) -> dict[str, SplitText]:
    """Returns the texts with their tokens found, under rules of words."""
    if rule not in ("words", "whitespace"):
        return {}
    return {name: SplitText(text, rule) for name, text in texts.items()}


def encoded_corpus(
    name: str,
    texts: dict[str, bytes],
    vocabulary: Vocabulary,
    paths: dict[str, str],
    expected: Sequence[int] | None = None,
    split_texts: Mapping[str, SplitText] | None = None,
) -> Corpus:
    """Returns the corpus of three texts.

    Args:
        name: Its name.
        texts: UTF-8 text of `train`, `valid` and `test`.
        vocabulary: The vocabulary, which has to know every token or have `<unk>`.
        paths: Where each text is from, for messages.
        expected: Tokens of each split, where they are published.
        split_texts: What `SplitText` made of the texts, if the vocabulary is of them.

    Raises:
        ValueError: If a split has no token, a token that is not known, or not as many
            as expected; names the file.
    """
    arrays = {}
    for number, (split, text) in enumerate(texts.items()):
        try:
            ids = vocabulary.encode((split_texts or {}).get(split, text))
        except ValueError as error:
            raise ValueError(f"{paths[split]}, {error}") from None
        if ids.size == 0:
            raise ValueError(
                f"{paths[split]}: {len(text)} bytes of text are left for the {split} "
                "split, which make no token. A longer text can be cut into three "
                "(`load_text_corpus` says how), or give files of their own for "
                "training, validation and test."
            )
        if expected is not None and ids.size != expected[number]:
            short = ids.size < expected[number]
            raise ValueError(
                f"{paths[split]}, line {text_files.line_of(text, len(text) - 1)} (the "
                f"last): expected {expected[number]:,} tokens in all ({name}, {split}),"
                f" found {ids.size:,}: the file is {'truncated or ' if short else ''}"
                "not the published one."
            )
        ids.flags.writeable = False
        arrays[split] = ids
    summary, num_bytes, num_words = summarise(vocabulary, texts, arrays)
    return Corpus(
        name=name,
        vocabulary=vocabulary,
        num_bytes=num_bytes,
        num_words=num_words,
        summary=summary,
        **arrays,
    )


# === Published corpora ===


def _load_published(name: str, data_dir: Path | None, download: bool) -> Corpus:
    corpus = PUBLISHED[name]
    paths = _find(name, corpus, data_dir, download)
    contents = [
        text_files.read_bytes(path, member)
        for path, member in zip(paths, corpus.files, strict=True)
    ]
    if corpus.rule != "bytes":
        contents = [
            text_files.check_text(data, path)
            for data, path in zip(contents, paths, strict=True)
        ]
    if name == "ptb-char":
        contents = [
            _join_symbols(data, path)
            for data, path in zip(contents, paths, strict=True)
        ]
    if len(contents) == 1 and corpus.tokens is not None:
        _check_length(paths[0], len(contents[0]), sum(corpus.tokens))
        ends = list(itertools.accumulate(corpus.tokens))
        contents = [
            contents[0][end - size : end]
            for size, end in zip(corpus.tokens, ends, strict=True)
        ]
        paths *= 3
    texts = dict(zip(SPLITS, contents, strict=True))
    split_texts = _split(texts, corpus.rule)
    vocabulary = Vocabulary.build(
        [split_texts.get(split, texts[split]) for split in corpus.vocabulary_of],
        corpus.rule,
    )
    split_paths = dict(zip(SPLITS, map(str, paths), strict=True))
    result = encoded_corpus(
        name, texts, vocabulary, split_paths, corpus.tokens, split_texts
    )
    if corpus.vocabulary_size not in (None, len(vocabulary)):
        raise ValueError(
            f"{paths[0]}: expected {corpus.vocabulary_size:,} distinct tokens in "
            f"{name}, found {len(vocabulary):,}: not the published file."
        )
    return result


def _find(
    name: str, corpus: PublishedCorpus, data_dir: Path | None, download: bool
) -> list[pathlib.Path]:
    """Returns the files of the splits (the same archive several times)."""
    help_text = f"Get it from {corpus.source}. Licence: {corpus.licence}."
    if corpus.url:
        help_text += " `download=True` fetches it."
    if data_dir is None:
        raise FileNotFoundError(
            f"corpus {name} needs {', '.join(corpus.files)}: give `data_dir` or set "
            f"the environment variable {DATA_DIR_VARIABLE}. {help_text}"
        )
    folders = [pathlib.Path(data_dir) / folder for folder in corpus.folders]
    found = [text_files.find_file(folders, file) for file in corpus.files]
    paths = [path for path in found if path is not None]
    if len(paths) == len(corpus.files):
        return paths
    for archive in corpus.archives:
        for folder in folders:
            if (folder / archive).is_file():
                return [folder / archive] * len(corpus.files)
    if download and corpus.url:
        return [_download(corpus, folders[0])]
    missing = [f for f, path in zip(corpus.files, found, strict=True) if path is None]
    raise FileNotFoundError(
        f"corpus {name}: no {', '.join(missing)} (plain, .gz or .zip) in "
        f"{', '.join(map(str, folders))}. {help_text}"
    )


def _download(corpus: PublishedCorpus, folder: pathlib.Path) -> pathlib.Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)  # else get_file picks its own place
        path = keras.utils.get_file(
            corpus.files[0],
            corpus.url,
            cache_dir=str(folder.parent),
            cache_subdir=folder.name,
            file_hash=corpus.sha256,
            hash_algorithm="sha256",
        )
    except Exception as error:  # get_file raises bare Exceptions for a failed fetch
        raise FileNotFoundError(
            f"{corpus.url} could not be fetched into {folder}: {error}"
        ) from error
    return pathlib.Path(path)


def _join_symbols(data: bytes, path: pathlib.Path) -> bytes:
    """Undoes the form of `ptb.char.*.txt`: symbols between blanks, `_` for a blank."""
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip(b" ")[1::2].strip(b" "):
            raise ValueError(
                f"{path}, line {number}: expected single symbols between blanks, found "
                f"{line[:40].decode(errors='replace')!r}."
            )
    return data.replace(b" ", b"").replace(b"_", b" ")


def _check_length(path: pathlib.Path, found: int, expected: int) -> None:
    if found != expected:
        raise ValueError(
            f"{path}: expected {expected:,} bytes, found {found:,}: the file is "
            f"{'truncated or ' if found < expected else ''}not the published one."
        )
