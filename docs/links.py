"""Links of the repository's pages, and of names in them, made to work in the site."""

from __future__ import annotations

import html
import pathlib
import posixpath
import re
from collections.abc import Callable

_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_FENCE = re.compile(r"^(```|~~~).*?^\1 *$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
# Names within these are not made links: code, links, headings, names of parameters.
_CODE = re.compile(
    r"<(pre|a|h[1-6]|autoref|b|details)\b.*?</\1>|<code>(?P<text>[^<]+)</code>",
    re.DOTALL,
)


def local_targets(markdown: str) -> list[str]:
    """Returns the paths that a page links to inside the repository, as written."""
    text = _FENCE.sub("", markdown)
    paths = (link.partition("#")[0] for _, link, _ in _LINK.findall(text))
    return [path for path in paths if path and not _elsewhere(path)]


def map_links(markdown: str, change: Callable[[str], str]) -> str:
    """Returns the page with its links into the repository changed, code apart."""

    def link(match: re.Match[str]) -> str:
        before, path, after = match.groups()
        path, sign, anchor = path.partition("#")
        if path and not _elsewhere(path):
            path = change(path)
        return f"{before}{path}{sign}{anchor}{after}"

    parts, end = [], 0
    for code in _FENCE.finditer(markdown):
        parts += [_LINK.sub(link, markdown[end : code.start()]), code.group()]
        end = code.end()
    return "".join([*parts, _LINK.sub(link, markdown[end:])])


def page_of(root: pathlib.Path, page: str, path: str) -> str:
    """Returns the file that a link of a page means, from the top of the repository.

    A folder means its README.md, or that of the next folder above it that has one.

    Args:
        root: The top of the repository.
        page: The page with the link.
        path: The link, relative to the page.
    """
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
    while (root / target).is_dir() and target not in (".", ""):
        if (root / target / "README.md").is_file():
            return f"{target}/README.md"
        target = posixpath.dirname(target)
    return target


def relative(target: str, page: str) -> str:
    """Returns the link from a page to a file, both from the top of the site."""
    return posixpath.relpath(target, posixpath.dirname(page) or ".")


def link_names(page: str, url_of: Callable[[str], str | None]) -> str:
    """Returns a page of HTML in which names in code are links.

    Args:
        page: What stands in the body.
        url_of: From the text of an inline code to where it leads, or None.
    """

    def link(match: re.Match[str]) -> str:
        text = match["text"]
        url = url_of(html.unescape(text)) if text else None
        if url is None:
            return match.group()
        return f'<a href="{html.escape(url)}">{match.group()}</a>'

    return _CODE.sub(link, page)


def _elsewhere(path: str) -> bool:
    return ":" in path or path.startswith("/")
