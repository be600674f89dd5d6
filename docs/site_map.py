"""What the site holds, and where a name or a test leads."""

from __future__ import annotations

import ast
import functools
import pathlib
import re
from collections import defaultdict

from docs.links import local_targets, page_of
from docs.papers import Row, read_rows
from docs.public_names import PublicName, Source, folder, line_of, pages

PAPERS = "PAPERS.md"
STUDIES = "experiments/README.md"
TOP = (
    "README.md",
    "EXAMPLES.md",
    PAPERS,
    "BUILD.md",
    "saved_models/README.md",
    "rlm_tf/distillation/README.md",
    STUDIES,
)

_DOTTED = re.compile(r"(?:rlm_tf|experiments)(?:\.\w+)+")
_PATH = re.compile(r"(?:rlm_tf|experiments)/[\w/]+(?:\.py)?")
_CODE = re.compile(r"`([^`\n]+)`")
_TEST = re.compile(r"(tests/[\w/]+\.py)(?:::(\w+))?")
# A class, or a name of more than one word; others are words, too.
_BARE = re.compile(r"([A-Z]\w+|[a-z]\w*_\w+)(?:\(.*\))?")


class SiteMap:
    """The repository's pages, the library's public names, and the files they show.

    Paths are from the top of the repository, and of the site, where pages keep them.

    Args:
        root: The top of the repository.

    Attributes:
        texts: The Markdown of each page of the repository, by its path.
        studies: The pages of studies.
        rows: The rows of PAPERS.md.
        names: The public names.
        pages: The page of each of them.
        members: The public names of each public module.
        shown: The files that pages link to or name, by their path in the site.
    """

    def __init__(self, root: pathlib.Path):
        self.root = root
        self.source = Source(root)
        self.names = self.source.names()
        self.pages = pages(self.names)
        self.studies = sorted(
            path.relative_to(root).as_posix()
            for path in root.glob("experiments/*/README.md")
        )
        self.texts = {
            page: (root / page).read_text("utf-8") for page in [*TOP, *self.studies]
        }
        self.rows = read_rows(self.texts[PAPERS])
        self.by_path = {name.definition: name for name in self.names}
        self.by_path |= {name.path: name for name in self.names}
        self.members: dict[str, list[PublicName]] = defaultdict(list)
        for name in self.names:
            self.members[name.module].append(name)
        self.shown = {shown_at(path): path for path in self._shown_files()}

    def _shown_files(self) -> set[str]:
        found = set()
        for page, text in self.texts.items():
            for path in local_targets(text):
                target = page_of(self.root, page, path)
                if (self.root / target).is_file() and target not in self.texts:
                    found.add(target)
            for code in _CODE.findall(text):
                place = self._place_in_source(code)
                if place is not None:
                    found.add(place[0])
        return found

    def target(self, text: str) -> str | None:
        """Returns where a name, path or test in code leads, None for other code.

        Args:
            text: What stands between the backticks.
        """
        if _PATH.fullmatch(text):
            text = text.rstrip("/").removesuffix(".py").replace("/", ".")
        if _DOTTED.fullmatch(text):
            page = self.page_of_name(text)
            if page:
                return page
        place = self._place_in_source(text)
        if place:
            shown = shown_at(place[0])
            return f"{shown}#line-0-{place[1]}" if shown in self.shown else None
        bare = _BARE.fullmatch(text)
        return self._bare.get(bare[1]) if bare else None

    def page_of_name(self, dotted: str) -> str | None:
        """Returns the page of a public name, of its class, module or study."""
        if dotted in self.by_path:
            return self.pages[self.by_path[dotted]]
        if dotted in self.members:
            return overview(dotted)
        study = "/".join([*dotted.split("."), "README.md"])
        if study in self.studies:
            return study
        owner = self.by_path.get(dotted.rpartition(".")[0])
        return self.pages[owner] if owner else None

    def _place_in_source(self, text: str) -> tuple[str, int] | None:
        """Returns file and line of a test, or of a name that has no page."""
        test = _TEST.fullmatch(text)
        if test:
            path = self.root / test[1]
            names = [test[2]] if test[2] else []
            number = line_of(_parsed(path), names) if path.is_file() else None
            return None if number is None else (test[1], number)
        if not _DOTTED.fullmatch(text) or self.page_of_name(text):
            return None
        place = self.source.line(text)
        return place and (place[0].relative_to(self.root).as_posix(), place[1])

    @functools.cached_property
    def _bare(self) -> dict[str, str]:
        """Pages of names that mean one thing wherever they stand."""
        found: dict[str, set[str]] = defaultdict(set)
        for name, page in self.pages.items():
            found[name.name].add(page)
        return {name: page for name, (page, *more) in found.items() if not more}

    def rows_of(self, page: str) -> list[Row]:
        """Returns the rows of PAPERS.md that name what has this page."""
        return [
            row
            for row in self.rows
            if any(self.page_of_name(name) == page for name in row.named)
        ]

    def has_own_page(self, name: PublicName) -> bool:
        """Returns whether the page of a name is in the folder of its module.

        It is not where the name is an old one, or that of another module, too.
        """
        base = f"{folder(name.module)}/{name.name}"
        return self.pages[name] in (f"{base}.md", f"{base}-function.md")


def overview(module: str) -> str:
    """Returns the page that lists the names of a public module."""
    return f"{folder(module)}/README.md"


def shown_at(path: str) -> str:
    """Returns the path in the site of a file: source has a page, others are copied."""
    return f"source/{path}.md" if path.endswith(".py") else path


@functools.cache
def _parsed(path: pathlib.Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))
