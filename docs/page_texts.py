"""The Markdown of every page, by its path in the site."""

from __future__ import annotations

from docs.links import map_links, page_of, relative
from docs.papers import Row, with_anchors
from docs.public_names import LIBRARY
from docs.site_map import PAPERS, SiteMap, overview, shown_at


def page_texts(site: SiteMap) -> dict[str, str]:
    """Returns the pages that are in the navigation."""
    texts = {page: _repository_page(site, page) for page in site.texts}
    texts |= {overview(module): _module_page(site, module) for module in site.members}
    return texts | {page: _name_page(site, page) for page in site.pages.values()}


def source_texts(site: SiteMap) -> dict[str, str]:
    """Returns the pages with source."""
    return {
        shown: _source_page(site, path)
        for shown, path in site.shown.items()
        if shown != path
    }


def _repository_page(site: SiteMap, page: str) -> str:
    text = site.texts[page]
    if page == PAPERS:
        text = with_anchors(text)
    if page in site.studies:
        text += _rows_of_study(site, page)
    text = map_links(
        text, lambda path: relative(shown_at(page_of(site.root, page, path)), page)
    )
    if page in ("README.md", PAPERS):
        # It has its tab to itself.
        text = f"---\nhide: [navigation]\n---\n{text}"
    return text


def _module_page(site: SiteMap, module: str) -> str:
    page = overview(module)
    lines = ["---", f"title: {module}", "---", f"::: {module}"]
    lines += ["    options:", "      members: false", ""]
    lines += ["| name | what it is |", "| --- | --- |"]
    for name in site.members[module]:
        link = relative(site.pages[name], page)
        lines.append(f"| [`{name.name}`]({link}) | {_cell(name.summary)} |")
    if module == LIBRARY:
        lines += ["", "## Packages and modules", ""]
        lines += ["| module | what it holds |", "| --- | --- |"]
        for other in sorted(site.members):
            if other != LIBRARY:
                link = relative(overview(other), page)
                summary = " ".join(
                    site.source.docstring(other).split("\n\n")[0].split()
                )
                lines.append(f"| [`{other}`]({link}) | {_cell(summary)} |")
    return "\n".join(lines) + "\n"


def _name_page(site: SiteMap, page: str) -> str:
    same = [name for name in site.names if site.pages[name] == page]
    own = next(name for name in same if site.has_own_page(name))
    lines = [f"::: {own.path}", ""]
    others = [f"`{name.path}`" for name in same if name != own]
    if others:
        lines += [f"Also {', '.join(others)}.", ""]
    rows = site.rows_of(page)
    if rows:
        lines += ["## In the papers", ""]
        lines += _table(site, rows, page, {"test": "test", "study": "study"})
    return "\n".join(lines) + "\n"


def _rows_of_study(site: SiteMap, page: str) -> str:
    study = page.removesuffix("/README.md")
    rows = [row for row in site.rows if study in row.studies]
    if not rows:
        return ""
    lines = ["", "## Equations that it uses", ""]
    lines += _table(site, rows, page, {"names": "function or class"})
    return "\n".join(lines) + "\n"


def _table(
    site: SiteMap, rows: list[Row], page: str, columns: dict[str, str]
) -> list[str]:
    """Returns the lines of a table of rows of PAPERS.md on another page."""
    head = ["equation", "document", "what it says", *columns.values()]
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join(['---'] * len(head))} |"]

    def link(path: str) -> str:
        return relative(shown_at(page_of(site.root, PAPERS, path)), page)

    for row in rows:
        equation = f"[{row.equation}]({PAPERS}#{row.anchor})"
        cells = [equation, row.document, row.says]
        cells += [getattr(row, column) for column in columns]
        lines.append(map_links(f"| {' | '.join(cells)} |", link))
    return lines


def _source_page(site: SiteMap, path: str) -> str:
    text = (site.root / path).read_text("utf-8")
    # Longer than any fence in the source.
    fence = "`" * 8
    meta = "---\nsearch:\n  exclude: true\n---\n"
    return f"{meta}# {path}\n\n{fence}python\n{text}\n{fence}\n"


def _cell(text: str) -> str:
    """Returns a text whose bars, but for those in code, end no cell of a table."""
    parts = text.split("`")
    parts[::2] = [part.replace("|", "\\|") for part in parts[::2]]
    return "`".join(parts)
