"""Documents, seed words and true labels, as users give them."""

from __future__ import annotations

import hashlib
import json
import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from rlm_tf.commands.seeds.settings import SeedClassifySettings
from rlm_tf.commands.settings import EMBEDDED
from rlm_tf.data.labelled.document_files import DocumentRow, read_document_rows
from rlm_tf.data.labelled.table_files import column, read_table
from rlm_tf.data.text.python_docs import python_docs
from rlm_tf.labelling import SeedRule

# Of a paragraph of the embedded corpus.
_LEAST_CHARACTERS = 60


class Corpus(NamedTuple):
    """The documents.

    Attributes:
        ids: Of each.
        texts: The documents.
        digest: Of both.
    """

    ids: list[str]
    texts: list[str]
    digest: str


def read_corpus(settings: SeedClassifySettings) -> Corpus:
    """Reads the documents; errors name file and line."""
    ids, texts, digest = [], [], hashlib.sha256()
    for row in _rows(settings):
        ids.append(row.id)
        texts.append(row.text)
        for part in (row.id, row.text):
            digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return Corpus(ids, texts, digest.hexdigest())


def _rows(settings: SeedClassifySettings) -> Iterator[DocumentRow]:
    if settings.texts == EMBEDDED:
        lines = "".join(python_docs().values()).splitlines()
        # Headings are no documents.
        long = [line for line in lines if len(line) >= _LEAST_CHARACTERS]
        for number, line in enumerate(long, start=1):
            yield DocumentRow(str(number), line, number)
        return
    yield from read_document_rows(
        str(settings.texts),
        text_column=settings.text_column,
        id_column=settings.id_column,
        encoding=settings.encoding,
    )


def read_rule(path: str) -> SeedRule:
    """Reads seed words.

    Raises:
        ValueError: If the file is no JSON of lists by class, or the rule cannot be.
    """
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8-sig")
        found = json.loads(text, object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"--seed_words={path}: {error}.") from None
    if not isinstance(found, dict):
        raise ValueError(
            f"--seed_words={path}: expected lists of words by class, found "
            f"{type(found).__name__}."
        )
    try:
        return SeedRule(found)
    except ValueError as error:
        # Users know the file, and no class of ours.
        said = str(error).removeprefix(f"{SeedRule.__name__}: ").replace("`", "")
        raise ValueError(f"--seed_words={path}: {said}") from None


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns an object of JSON; ValueError if a name is there twice.

    Names are cut as cells of tables are, which they are compared with.
    """
    names = [name.strip() for name, _ in pairs]
    found = dict(zip(names, (own for _, own in pairs), strict=True))
    if len(found) < len(pairs):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the class {twice!r} is there twice")
    return found


def read_labels(path: str, corpus: Corpus, names: tuple[str, ...]) -> np.ndarray:
    """Returns true labels, int `[N]`, -1 of documents without.

    Raises:
        ValueError: If a column is missing, an id is none of the documents' or doubled,
            or a label is no class.
    """
    header, rows = read_table(path)
    name = f"--labels={path}"
    id_at, label_at = column(name, header, "id"), column(name, header, "label")
    places = {own: place for place, own in enumerate(corpus.ids)}
    found = np.full(len(corpus.ids), -1)
    for row in rows:
        own, label = row[id_at], row[label_at].strip()
        if not label:
            # Not labelled yet.
            continue
        if own not in places:
            raise ValueError(f"--labels={path}: no document has the id {own!r}.")
        if label not in names:
            raise ValueError(
                f"--labels={path}: unknown label {label!r} of {own!r}; expected one of "
                f"{', '.join(names)}."
            )
        if found[places[own]] >= 0:
            raise ValueError(f"--labels={path}: the id {own!r} is there twice.")
        found[places[own]] = names.index(label)
    return found
