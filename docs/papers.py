"""The rows of PAPERS.md: which name computes an equation, and which study uses it."""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = re.compile(r"`(rlm_tf(?:\.\w+)+)`")
_STUDY = re.compile(r"\((experiments/\w+)[/)]")
_COLUMNS = 5


class Row(NamedTuple):
    """An equation, algorithm or proposition of a document.

    Attributes:
        document: The heading above the table.
        anchor: Where the row is on the page.
        equation: Its number.
        says: What it says.
        names: The cell with the names that compute it.
        test: The cell with its tests.
        study: The cell with its studies.
    """

    document: str
    anchor: str
    equation: str
    says: str
    names: str
    test: str
    study: str

    @property
    def named(self) -> list[str]:
        """The dotted names of the library in the row."""
        return _NAME.findall(self.names)

    @property
    def studies(self) -> list[str]:
        """The folders of the studies in the row."""
        return _STUDY.findall(self.study)


def read_rows(page: str) -> list[Row]:
    """Returns the rows of all tables of equations, in their order."""
    return [row for _, row in _lines_with_rows(page) if row is not None]


def with_anchors(page: str) -> str:
    """Returns the page with an anchor in each row."""
    lines = []
    for line, row in _lines_with_rows(page):
        if row is not None:
            line = line.replace("| ", f'| <a id="{row.anchor}"></a>', 1)
        lines.append(line)
    return "\n".join(lines) + "\n"


def _lines_with_rows(page: str) -> list[tuple[str, Row | None]]:
    found: list[tuple[str, Row | None]] = []
    document, number = "", 0
    for line in page.splitlines():
        if line.startswith("## "):
            document = line[3:].strip()
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        heading = cells[0].startswith(("---", "equation"))
        if line.startswith("|") and len(cells) == _COLUMNS and not heading:
            number += 1
            found.append((line, Row(document, f"row-{number}", *cells)))
        else:
            found.append((line, None))
    return found
