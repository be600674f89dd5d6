"""Tables of pages: between markers, written from the rows of the studies.

A page marks where a table belongs, and what is between the markers is replaced:

    <!-- table imm_lm/main -->
    <!-- end -->

The table `main` of the study `imm_lm` is what `experiments.imm_lm.page.tables` returns
under that name; `index` is the list of all studies.
"""

from __future__ import annotations

import functools
import importlib
import pathlib
import re
from collections.abc import Callable, Iterator

from experiments.kit.drawing import table

EXPERIMENTS = pathlib.Path(__file__).parents[1]
ROOT = EXPERIMENTS.parent

_TABLE = re.compile(
    r"(?P<begin><!-- table (?P<name>\S+) -->\n)"
    r"(?P<body>(?:(?!<!-- table ).)*?)(?P<end><!-- end -->)",
    re.DOTALL,
)
_MARKER = re.compile(r"<!-- (table\b|end\b)")


def pages() -> list[pathlib.Path]:
    """Returns the pages that may have tables."""
    own = [ROOT / "README.md", ROOT / "BUILD.md", EXPERIMENTS / "README.md"]
    return [*own, *sorted(EXPERIMENTS.glob("*/README.md"))]


def studies() -> list[str]:
    """Returns the names of the studies, which are the folders with a `page.py`."""
    return sorted(path.parent.name for path in EXPERIMENTS.glob("*/page.py"))


@functools.cache
def tables_of(study: str) -> dict[str, str]:
    """Returns the tables of a study, in Markdown, by name.

    Raises:
        ValueError: If there is no such study.
    """
    if study not in studies():
        raise ValueError(f"no study {study!r}; there are {', '.join(studies())}")
    page = importlib.import_module(f"experiments.{study}.page")
    return dict(page.tables(EXPERIMENTS / study))


def find_table(name: str) -> str:
    """Returns the table of a name `study/table`, or the index.

    Raises:
        ValueError: If there is none.
    """
    if name == "index":
        return index()
    study, _, own = name.partition("/")
    tables = tables_of(study)
    if own not in tables:
        raise ValueError(
            f"{study} has no table {own!r}; it has {', '.join(sorted(tables))}"
        )
    return tables[own]


def index() -> str:
    """Returns the list of all studies."""
    lines = []
    for study in studies():
        page = importlib.import_module(f"experiments.{study}.page")
        about = page.ABOUT
        headline = page.headline(EXPERIMENTS / study)
        link = f"[{study}]({study}/README.md)"
        command = f"`{about.command}`"
        lines.append((link, about.paper, about.question, headline, command, about.time))
    titles = ("study", "paper", "question", "headline", "command", "time")
    return table(titles, lines, left=range(6))


def filled(text: str, find: Callable[[str], str], place: str) -> str:
    """Returns a page with its tables.

    Args:
        text: The page.
        find: Returns a table by name; raises ValueError if there is none.
        place: Of the page, for messages.

    Raises:
        ValueError: If a marker has no partner, or names no table.
    """
    if len(_MARKER.findall(text)) != 2 * len(names_in(text)):
        raise ValueError(
            f"{place}: each '<!-- table STUDY/NAME -->' needs one '<!-- end -->' "
            "behind it, on a line of its own."
        )

    def replaced(match: re.Match[str]) -> str:
        try:
            found = find(match["name"])
        except ValueError as error:
            raise ValueError(f"{place}: {error}.") from None
        return f"{match['begin']}{found.strip()}\n{match['end']}"

    return _TABLE.sub(replaced, text)


def names_in(text: str) -> list[str]:
    """Returns the names of the tables of a page, in its order."""
    return [match["name"] for match in _TABLE.finditer(text)]


def outdated() -> Iterator[tuple[pathlib.Path, str]]:
    """Gives the pages that are not as the rows have it, and what they should be."""
    for path in pages():
        text = path.read_text("utf-8")
        wanted = filled(text, find_table, str(path.relative_to(ROOT)))
        if wanted != text:
            yield path, wanted
