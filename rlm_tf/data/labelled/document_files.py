"""A user's documents, read one after the other from files of several forms."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import pathlib
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from rlm_tf.data.labelled.table_files import broken_table, column, long_cells

Path = str | os.PathLike[str]
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_JSON = (".jsonl", ".ndjson", ".json")
# The column of ids, if no other is named.
_ID = "id"


class DocumentRow(NamedTuple):
    """A document of a file.

    Attributes:
        id: As the file has it, or its number in the file, from 1 on.
        text: The document.
        line: The line of the file that it ends in, from 1 on.
    """

    id: str
    text: str
    line: int


def read_document_rows(
    path: Path,
    *,
    text_column: str = "text",
    id_column: str | None = None,
    encoding: str = "utf-8",
) -> Iterator[DocumentRow]:
    """Gives the documents of a file, one after the other.

    By the file's name, without `.gz`: tables `.csv` and `.tsv`, whose first line names
    the columns, with quotes as usual; `.jsonl`, an object a line; of any other each
    line is a document, empty ones too. A byte order mark is dropped, and ends of lines
    may be those of Windows.

    Args:
        path: Of the file.
        text_column: Name of the documents' column, or key.
        id_column: Name of their ids' column; None: `id` if there is one, else they are
            numbered.
        encoding: Of the file.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is no text of the encoding, has no such column, a row of
            another length, a line that is no object, an id twice, or no document;
            names file and line.
    """
    path = pathlib.Path(path)
    kinds = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    kind = kinds[-1] if kinds else ""
    number = 0
    seen: dict[str, int] = {}
    with _opened(path) as file:
        lines = _lines(path, file, encoding)
        if kind in _DELIMITERS:
            rows = _of_table(path, lines, _DELIMITERS[kind], text_column, id_column)
        elif kind in _JSON:
            rows = _of_json(path, lines, text_column, id_column)
        else:
            if id_column is not None:
                raise ValueError(
                    f"{path}: lines of text have no column {id_column!r}; expected a "
                    ".csv, .tsv or .jsonl file."
                )
            rows = (
                (None, line.rstrip("\n").removesuffix("\r"), place)
                for place, line in enumerate(lines, start=1)
            )
        with long_cells():
            for own, text, line in rows:
                number += 1
                name = str(number) if own is None else own
                if own is not None and seen.setdefault(name, line) != line:
                    raise ValueError(
                        f"{path}, line {line}: the id {name!r} was already in line "
                        f"{seen[name]}."
                    )
                yield DocumentRow(name, text, line)
    if not number:
        raise ValueError(f"{path}: there is no document.")


def _opened(path: pathlib.Path) -> BinaryIO:
    if path.suffix.lower() == ".gz":
        return gzip.open(path)  # type: ignore[return-value]
    return open(path, "rb")


def _lines(path: pathlib.Path, file: BinaryIO, encoding: str) -> Iterator[str]:
    """Gives the lines of a file with their ends; only a newline ends one."""
    try:
        start = "\n".encode(encoding)
    except (LookupError, UnicodeError):
        raise ValueError(
            f"--encoding: {encoding!r} is none that Python knows."
        ) from None
    offset = 0
    if start != b"\n":
        # Of two bytes or more: lines are cut behind decoding.
        yield from _wide_lines(path, file, encoding)
        return
    try:
        for number, data in enumerate(file, start=1):
            try:
                line = data.decode(encoding)
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{path}, line {number}: byte {offset + error.start} is no "
                    f"{encoding} text (--encoding)."
                ) from None
            offset += len(data)
            yield line.removeprefix("\ufeff") if number == 1 else line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: a damaged .gz file: {error}.") from None


def _wide_lines(path: pathlib.Path, file: BinaryIO, encoding: str) -> Iterator[str]:
    reader = io.TextIOWrapper(file, encoding, newline="\n")
    number = 0
    try:
        for line in reader:
            number += 1
            yield line.removeprefix("\ufeff") if number == 1 else line
    except UnicodeError:
        raise ValueError(_first_damage(path, encoding)) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: a damaged .gz file: {error}.") from None


def _first_damage(path: pathlib.Path, encoding: str) -> str:
    """Returns where a file is no text: it is read anew, as a reader is ahead."""
    with _opened(path) as file:
        data = file.read()
    try:
        data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].decode(encoding).count("\n") + 1
        where = f"{path}, line {line}: byte {error.start}"
        return f"{where} is no {encoding} text (--encoding)."
    except UnicodeError as error:
        return f"{path}: no {encoding} text (--encoding): {error}."
    return f"{path}: no {encoding} text (--encoding)."


_Row = tuple[str | None, str, int]


def _of_table(
    path: pathlib.Path,
    lines: Iterator[str],
    delimiter: str,
    text_column: str,
    id_column: str | None,
) -> Iterator[_Row]:
    # A quotation mark that is never closed would take all that follows.
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        names = next(reader, None)
        if not names:
            raise ValueError(f"{path}: the first line must name the columns.")
        text_at = column(path, names, text_column)
        if id_column is None and _ID in names:
            id_column = _ID
        id_at = None if id_column is None else column(path, names, id_column)
        for row in reader:
            if not row:
                continue
            if len(row) != len(names):
                raise ValueError(
                    f"{path}, line {reader.line_num}: expected {len(names)} columns "
                    f"as in the first line, found {len(row)}."
                )
            own = None if id_at is None else row[id_at]
            yield own, row[text_at], reader.line_num
    except csv.Error as error:
        raise broken_table(path, reader.line_num, error) from None


def _of_json(
    path: pathlib.Path,
    lines: Iterator[str],
    text_column: str,
    id_column: str | None,
) -> Iterator[_Row]:
    seen = False
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{path}, line {number}: expected a JSON object a line: {error}."
            ) from None
        if not isinstance(found, dict):
            raise ValueError(
                f"{path}, line {number}: expected a JSON object, found "
                f"{type(found).__name__}."
            )
        where = f"{path}, line {number}"
        if not (seen or id_column) and isinstance(found.get(_ID), str | int):
            id_column = _ID
        seen = True
        text = found[column_of(where, found, text_column)]
        if not isinstance(text, str):
            raise ValueError(
                f"{where}: {text_column!r} must be a text, found {type(text).__name__}."
            )
        own = None
        if id_column is not None:
            value = found[column_of(where, found, id_column)]
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise ValueError(
                    f"{where}: {id_column!r} must be a text or a whole number, found "
                    f"{type(value).__name__}."
                )
            own = str(value)
        yield own, text, number


def column_of(where: str, found: dict[str, Any], wanted: str) -> str:
    """Returns a key that an object has; ValueError names the nearest one."""
    column(where, list(found), wanted)
    return wanted
