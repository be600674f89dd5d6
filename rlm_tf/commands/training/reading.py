"""The text of `rlm_tf train`: read, looked at, cut into three."""

from __future__ import annotations

import codecs
import collections
import hashlib
import os
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rlm_tf.command_line.wording import number_of
from rlm_tf.commands.settings import EMBEDDED, TrainSettings
from rlm_tf.data.text import text_files
from rlm_tf.data.text.python_docs import python_docs

SPLITS = ("train", "valid", "test")
_FIRST = (0.8, 0.9)
# Least bytes of a text of which anything can be learnt, and of each split.
_LEAST = 2000
_SAMPLE = 200_000
# Of held-out text more tells nothing new.
_MOST_HELD_OUT = 500_000
_MOST_REPEATED = 0.05
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Texts(NamedTuple):
    """Texts as they were read.

    Attributes:
        name: What the reader knows the text by.
        splits: UTF-8 text of `train`, `valid` and `test`.
        counted: More text that may only be counted, or None.
        notes: Lines that tell what the text is like and how it was cut.
        warnings: Lines that a person should read.
    """

    name: str
    splits: dict[str, bytes]
    counted: bytes | None
    notes: list[str]
    warnings: list[str]


def read_texts(settings: TrainSettings) -> Texts:
    """Reads the texts that the settings name.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If one is a folder, empty, no UTF-8 text, or too short to be cut.
    """
    name = str(settings.text)
    most = int(settings.most_megabytes * 1e6)
    notes: list[str] = []
    warnings: list[str] = []
    if name == EMBEDDED:
        splits = {split: text.encode() for split, text in python_docs().items()}
        notes.append("split: as published with the library, 8:1:1 by topics")
    elif settings.valid is not None and settings.test is not None:
        paths = dict(zip(SPLITS, (name, settings.valid, settings.test), strict=True))
        splits = {split: read_text(path) for split, path in paths.items()}
        splits["train"] = first_part(splits["train"], name, most, warnings)
        notes.append("split: as given")
    else:
        whole = first_part(read_text(name), name, most, warnings)
        splits = _cut(whole, name, notes)
        for split in SPLITS[1:]:
            if len(splits[split]) > _MOST_HELD_OUT:
                splits[split] = _cut_to(splits[split], _MOST_HELD_OUT)
                notes.append(
                    f"{split}: its first {len(splits[split]) / 1e6:.1f} MB are measured"
                )
    counted = None
    if settings.count_text is not None:
        counted = read_text(settings.count_text)
        counted = first_part(counted, settings.count_text, most, warnings)
    notes[:0] = list(_looked_at(splits, warnings))
    if counted is not None:
        notes.append(f"counted, too: {settings.count_text}, {size_text(counted)}")
        _warn_of_shared(_shared(splits, counted), "--count_text", warnings)
    return Texts(name, splits, counted, notes, warnings)


def read_text(path: str | os.PathLike[str]) -> bytes:
    """Returns the UTF-8 text of a file, ending in a newline.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is empty, binary or in another encoding; says how
            the encoding is changed.
    """
    data = text_files.read_bytes(path)
    if data.startswith(_UTF_16):
        raise ValueError(
            f"{path} is UTF-16; expected UTF-8. `iconv -f UTF-16 -t UTF-8 {path}` "
            "writes it so."
        )
    try:
        text = text_files.check_text(data, path)
    except ValueError as error:
        if b"\0" in data:
            raise
        raise ValueError(
            f"{str(error).rstrip('.')}. If it is Latin-1, `iconv -f ISO-8859-1 -t UTF-8"
            f" {path}` writes it as UTF-8."
        ) from None
    if not text.strip():
        raise ValueError(f"{path} has blanks alone; expected text.")
    return text if text.endswith(b"\n") else text + b"\n"


# === Cutting ===


def _cut_to(text: bytes, most: int) -> bytes:
    """Returns the first lines of a text, or of long lines a part."""
    part = text_files.cut(text, [most / len(text)], at_lines=True)[0]
    if len(part) > 1.1 * most:
        part = text_files.cut(text, [most / len(text)], at_lines=False)[0]
    return part


def first_part(text: bytes, name: str, most: int, warnings: list[str]) -> bytes:
    """Returns as much of a text as is used; adds a warning if that is not all."""
    if len(text) <= most:
        return text
    part = _cut_to(text, most)
    warnings.append(
        f"{name} has {len(text) / 1e6:,.0f} MB; its first {len(part) / 1e6:,.1f} MB "
        "are used (--most_megabytes)"
    )
    return part


def _cut(whole: bytes, name: str, notes: list[str]) -> dict[str, bytes]:
    how = "8:1:1 by whole lines, in their order"
    parts = text_files.cut(whole, _FIRST, at_lines=True)
    if min(map(len, parts)) < 0.05 * len(whole):
        # A few very long lines.
        how = "8:1:1, within lines, which are long"
        parts = text_files.cut(whole, _FIRST, at_lines=False)
    if len(whole) < _LEAST or not all(part.strip() for part in parts):
        lines = len(whole.splitlines())
        raise ValueError(
            f"{name}: a text of {number_of('line', lines)} and {len(whole):,} "
            f"bytes is too short to be learnt from, and to be cut 8:1:1 for training, "
            f"validation and test; expected {_LEAST:,} bytes at least."
        )
    notes.append(f"split: {how}")
    return dict(zip(SPLITS, parts, strict=True))


# === Looking ===


def _looked_at(splits: dict[str, bytes], warnings: list[str]) -> Iterator[str]:
    """Gives lines that tell what a text is like."""
    whole = b"".join(splits.values())
    lines = [line for line in whole.split(b"\n") if line.strip()]
    lengths = np.array([len(line) for line in lines])
    words = len(whole.split())
    yield (
        f"text: {size_text(whole)}, {len(lines):,} lines (median "
        f"{np.median(lengths):.0f} bytes, longest {lengths.max():,}), {words:,} words"
    )
    yield f"scripts: {_scripts(whole[:_SAMPLE].decode('utf-8', 'ignore'))}"
    counts = collections.Counter(lines)
    repeated = sum(count for count in counts.values() if count > 1) / len(lines)
    shared = _shared(splits, splits["train"])
    yield (
        f"repeated: {100 * repeated:.1f} % of the lines occur more than once; of the "
        f"validation text {100 * shared['valid']:.1f} % and of the test text "
        f"{100 * shared['test']:.1f} % are lines of the training text"
    )
    _warn_of_shared(shared, "the training text", warnings)


def _shared(splits: dict[str, bytes], known: bytes) -> dict[str, float]:
    """Returns the share of each held-out text that are lines of a text."""
    seen = set(known.split(b"\n"))
    shared = {}
    for split in ("valid", "test"):
        own = [line for line in splits[split].split(b"\n") if line.strip()]
        # Short lines recur in any text.
        size = sum(len(line) for line in own)
        shared[split] = sum(len(line) for line in own if line in seen) / max(size, 1)
    return shared


def _warn_of_shared(shared: dict[str, float], where: str, warnings: list[str]) -> None:
    if max(shared.values()) > _MOST_REPEATED:
        warnings.append(
            f"{100 * max(shared.values()):.0f} % of a held-out text are lines of "
            f"{where}: numbers below are better than on new text. Remove doubled "
            "lines, or give --valid and --test"
        )


def size_text(text: bytes) -> str:
    """Returns how large a text is."""
    if len(text) < 1e6:
        return f"{len(text) / 1e3:,.1f} kB"
    return f"{len(text) / 1e6:,.1f} MB"


def _scripts(sample: str) -> str:
    """Returns the scripts of the letters of a text with their shares."""
    counts: collections.Counter[str] = collections.Counter()
    for character, count in collections.Counter(sample).items():
        if character.isalpha():
            # Names begin with the script: LATIN SMALL LETTER A.
            first = unicodedata.name(character, "OTHER").split()[0]
            counts[first.title() if first != "CJK" else "Han"] += count
    total = sum(counts.values())
    if not total:
        return "no letters"
    shares = [
        f"{name} {100 * count / total:.0f} %"
        for name, count in counts.most_common(4)
        if count >= 0.005 * total
    ]
    return ", ".join(shares)


def digest_of(texts: Texts) -> str:
    """Returns a digest of all splits, and of what may be counted."""
    digest = hashlib.sha256()
    for text in (*texts.splits.values(), texts.counted or b""):
        digest.update(len(text).to_bytes(8, "little"))
        digest.update(text)
    return digest.hexdigest()
