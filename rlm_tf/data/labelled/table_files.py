"""Tables of texts and labels: a user's CSV or TSV, and those that are published."""

from __future__ import annotations

import contextlib
import csv
import difflib
import io
import logging
import math
import os
import pathlib
from collections.abc import Iterator, Sequence

import numpy as np

from rlm_tf.data.labelled.labelled_texts import LabelledTexts
from rlm_tf.data.text.text_files import check_text, read_bytes

Path = str | os.PathLike[str]
_LOGGER = logging.getLogger(__name__)
# The csv module reads no cells above 131,072 characters by default.
_LONGEST_CELL = 1 << 30
# Of labels that are numbers.
_MOST = float(np.finfo(np.float32).max)


@contextlib.contextmanager
def long_cells() -> Iterator[None]:
    """Lets the csv module read cells of any length inside."""
    limit = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def read_table(
    path: Path,
    delimiter: str | None = None,
    *,
    quoted: bool = True,
    skip_broken: bool = False,
) -> tuple[list[str], list[list[str]]]:
    """Returns the columns' names and the rows of a file.

    Args:
        path: Of the file, plain, `.gz` or `.zip`; UTF-8.
        delimiter: Between columns; None: a tab if the name says `.tsv`, else a comma.
        quoted: Whether quotation marks hold cells together.
        skip_broken: Whether rows of other lengths than the first are left out, which a
            line of the log counts; else they are an error.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is no text, has no row, or rows of other lengths; names file
            and line.
    """
    if delimiter is None:
        name = pathlib.Path(path).name.removesuffix(".gz").removesuffix(".zip")
        delimiter = "\t" if name.endswith((".tsv", ".tab")) else ","
    text = check_text(read_bytes(path), path).decode()
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
    )
    rows: list[list[str]] = []
    broken = 0
    try:
        with long_cells():
            for row in reader:
                if not row:
                    continue
                if rows and len(row) != len(rows[0]):
                    if skip_broken:
                        broken += 1
                        continue
                    raise ValueError(
                        f"{path}, line {reader.line_num}: expected {len(rows[0])} "
                        f"columns as in the first line, found {len(row)}."
                    )
                rows.append(row)
    except csv.Error as error:
        raise broken_table(path, reader.line_num, error) from error
    if broken:
        _LOGGER.warning("%s: left out %s broken rows.", path, f"{broken:,}")
    if len(rows) < 2:
        raise ValueError(f"{path}: expected a line of names of columns, and rows.")
    return rows[0], rows[1:]


def broken_table(path: Path, line: int, error: csv.Error) -> ValueError:
    """Returns what is wrong with a table, for those who have not opened it."""
    said = str(error)
    if "universal-newline" in said:
        said = "a line ends with CR alone, as on old Macs; write the file with LF"
    return ValueError(f"{path}, line {line}: {said}.")


def column(path: Path, names: Sequence[str], wanted: str) -> int:
    """Returns the place of a column.

    Raises:
        ValueError: If there is none of that name, and names the nearest, or several, or
            columns are parted by another mark.
    """
    number = list(names).count(wanted)
    if number > 1:
        raise ValueError(f"{path}: has {number} columns {wanted!r}; expected one.")
    if number:
        return list(names).index(wanted)
    others = [mark for mark in ";|\t" if len(names) == 1 and mark in names[0]]
    if others:
        raise ValueError(
            f"{path}: its first line, {names[0]!r}, is one column; expected columns "
            f"parted by commas (tabs in a .tsv), found {others[0]!r}."
        )
    near = difflib.get_close_matches(wanted, names, n=1, cutoff=0.4)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise ValueError(
        f"{path}: has no column {wanted!r}{hint}; found {', '.join(names)}."
    )


def read_labelled(
    path: Path,
    *,
    text_column: str = "text",
    label_column: str = "label",
    text_b_column: str | None = None,
    names: Sequence[str] | None = None,
    regression: bool = False,
) -> LabelledTexts:
    """Reads a user's table of texts and labels.

    Args:
        path: A CSV or TSV file whose first line names the columns.
        text_column: Where texts are.
        label_column: Where labels are.
        text_b_column: Where second texts are; None: there are none.
        names: The classes, in order; None: those of the file, sorted.
        regression: Whether labels are numbers.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If a column is missing, a label empty, unknown or no number.
    """
    titles, rows = read_table(path)
    text, label = (column(path, titles, each) for each in (text_column, label_column))
    texts_b = None
    if text_b_column is not None:
        second = column(path, titles, text_b_column)
        texts_b = [row[second] for row in rows]
    given = [row[label].strip() for row in rows]
    texts = [row[text] for row in rows]
    if regression:
        return LabelledTexts(texts, numbers(path, given), (), texts_b)
    if "" in given:
        raise ValueError(
            f"{path}, row {given.index('') + 1}: the label is empty; leave out rows "
            "without one."
        )
    found = tuple(sorted(set(given))) if names is None else tuple(names)
    return LabelledTexts(texts, places(path, given, found), found, texts_b)


def numbers(path: Path, given: Sequence[str]) -> np.ndarray:
    """Returns labels that are numbers, float32 `[N]`.

    Raises:
        ValueError: If one is none, or not finite.
    """
    found = []
    for place, value in enumerate(given):
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not abs(number) <= _MOST:
            raise ValueError(
                f"{path}, row {place + 1}: expected a number as label, found {value!r}."
            )
        found.append(number)
    return np.array(found, np.float32)


def places(path: Path, given: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """Returns the places of labels among the names of classes, int32 `[N]`.

    Raises:
        ValueError: If one is unknown.
    """
    known = {name: place for place, name in enumerate(names)}
    for place, value in enumerate(given):
        if value not in known:
            raise ValueError(
                f"{path}, row {place + 1}: unknown label {value!r}; expected one of "
                f"{', '.join(names)}."
            )
    return np.array([known[value] for value in given], np.int32)
