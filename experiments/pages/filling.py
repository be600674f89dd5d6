"""Tables and numbers of pages: between markers, written from the rows of the studies.

A page marks where a table belongs, or a number within a line, and what is between the
markers is replaced:

    <!-- table imm_lm/main -->
    <!-- end -->
    IMM gains <!-- value imm_lm/gain -->5.0 %<!-- end --> there.

The table `main` of the study `imm_lm` is what `experiments.imm_lm.page.tables` returns
under that name, the value `gain` what its `values` returns, which not every study has;
every study has the value `headline`. The table `index` is the list of all studies.
"""

from __future__ import annotations

import functools
import importlib
import pathlib
import re
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

from experiments.kit.drawing import table
from experiments.kit.rows import Rows

EXPERIMENTS = pathlib.Path(__file__).parents[1]
ROOT = EXPERIMENTS.parent

_TABLE = re.compile(
    r"(?P<begin><!-- table (?P<name>\S+) -->\n)"
    r"(?P<body>(?:(?!<!-- (?:table|value) ).)*?)(?P<end><!-- end -->)",
    re.DOTALL,
)
_VALUE = re.compile(
    r"(?P<begin><!-- value (?P<name>\S+) -->)(?P<body>[^\n]*?)(?P<end><!-- end -->)"
)
_MARKER = re.compile(r"<!-- (?:table|value|end)\b")


def pages() -> list[pathlib.Path]:
    """Returns the pages that may have tables."""
    own = [ROOT / "README.md", ROOT / "BUILD.md", EXPERIMENTS / "README.md"]
    return [*own, *sorted(EXPERIMENTS.glob("*/README.md"))]


def studies() -> list[str]:
    """Returns the names of the studies, which are the folders with a `page.py`."""
    return sorted(path.parent.name for path in EXPERIMENTS.glob("*/page.py"))


def page_of(study: str) -> ModuleType:
    """Returns the module `page` of a study.

    Raises:
        ValueError: If there is no such study.
    """
    if study not in studies():
        raise ValueError(f"no study {study!r}; there are {', '.join(studies())}")
    return importlib.import_module(f"experiments.{study}.page")


@functools.cache
def tables_of(study: str) -> dict[str, str]:
    """Returns the tables of a study, in Markdown, by name."""
    return dict(page_of(study).tables(EXPERIMENTS / study))


@functools.cache
def values_of(study: str) -> dict[str, str]:
    """Returns the numbers of a study that other pages repeat, as text, by name."""
    page, folder = page_of(study), EXPERIMENTS / study
    own = page.values(folder) if hasattr(page, "values") else {}
    return {"headline": page.headline(folder), **own}


def find_table(name: str) -> str:
    """Returns the table of a name `study/table`, or the index.

    Raises:
        ValueError: If there is none.
    """
    if name == "index":
        return f"{index()}\n\nWritten by `python -m experiments.pages` (`make tables`)."
    found = _find("table", tables_of, name).strip()
    study, _, own = name.partition("/")
    return f"{found}\n\n{_made_by_line(made_by(study, own))}"


@functools.cache
def made_by(study: str, name: str) -> tuple[str, ...]:
    """Returns the commands whose rows a table of a study has, but for folders.

    A page may name one or several in `MADE_BY`, none where it is those of all the
    page's studies; of a study made of parts it is that of the part which has the
    table's name; else that of the index.
    """
    page = page_of(study)
    given = getattr(page, "MADE_BY", {})
    if name in given:
        return (given[name],) if isinstance(given[name], str) else given[name]
    rows = Rows(EXPERIMENTS / study)
    if name in rows:
        return (rows.read(name).get("command", page.ABOUT.command),)
    return (page.ABOUT.command,)


def _made_by_line(commands: Sequence[str]) -> str:
    if not commands:
        return "Made by the commands of all studies [above](#command)."
    *others, last = (f"`{command}`" for command in commands)
    return f"Made by {', '.join(others)}{' and ' if others else ''}{last}."


def find_value(name: str) -> str:
    """Returns the value of a name `study/value`.

    Raises:
        ValueError: If there is none.
    """
    return _find("value", values_of, name)


def _find(kind: str, contents: Callable[[str], dict[str, str]], name: str) -> str:
    study, _, own = name.partition("/")
    found = contents(study)
    if own not in found:
        raise ValueError(
            f"{study} has no {kind} {own!r}; it has {', '.join(sorted(found))}"
        )
    return found[own]


def index() -> str:
    """Returns the list of all studies."""
    lines = []
    for study in studies():
        page = page_of(study)
        about = page.ABOUT
        headline = page.headline(EXPERIMENTS / study)
        link = f"[{study}]({study}/README.md)"
        command = f"`{about.command}`"
        lines.append((link, about.paper, about.question, headline, command, about.time))
    titles = ("study", "paper", "question", "headline", "command", "time")
    return table(titles, lines, left=range(6))


def filled(
    text: str,
    table_named: Callable[[str], str],
    value_named: Callable[[str], str],
    place: str,
) -> str:
    """Returns a page with its tables and values.

    Args:
        text: The page.
        table_named: Returns a table by name; raises ValueError if there is none.
        value_named: Returns a value by name, likewise.
        place: Of the page, for messages.

    Raises:
        ValueError: If a marker has no partner, or names nothing.
    """
    names = [*names_in(text), *_VALUE.findall(text)]
    if len(_MARKER.findall(text)) != 2 * len(names):
        raise ValueError(
            f"{place}: each '<!-- table STUDY/NAME -->' needs one '<!-- end -->' "
            "behind it, on a line of its own, and each '<!-- value STUDY/NAME -->' one "
            "in its line."
        )

    def block(match: re.Match[str]) -> str:
        return f"{match['begin']}{table_named(match['name']).strip()}\n{match['end']}"

    def inline(match: re.Match[str]) -> str:
        return f"{match['begin']}{value_named(match['name'])}{match['end']}"

    try:
        return _VALUE.sub(inline, _TABLE.sub(block, text))
    except ValueError as error:
        raise ValueError(f"{place}: {error}.") from None


def names_in(text: str) -> list[str]:
    """Returns the names of the tables of a page, in its order."""
    return [match["name"] for match in _TABLE.finditer(text)]


def outdated() -> Iterator[tuple[pathlib.Path, str]]:
    """Gives the pages that are not as the rows have it, and what they should be."""
    for path in pages():
        text = path.read_text("utf-8")
        wanted = filled(text, find_table, find_value, str(path.relative_to(ROOT)))
        if wanted != text:
            yield path, wanted
