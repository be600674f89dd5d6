"""What a built site must hold: that every link, image and anchor exists."""

from __future__ import annotations

import html
import pathlib
import re
import urllib.parse
from typing import NamedTuple

_TAG = re.compile(r"<[a-zA-Z][^<>]*>")
_TARGET = re.compile(r'\s(?:href|src)="([^"]*)"')
_ANCHOR = re.compile(r'\s(?:id|name)="([^"]*)"')


class _Page(NamedTuple):
    targets: set[str]
    anchors: set[str]


def broken_links(site: pathlib.Path) -> list[str]:
    """Returns, a line each, the links of a built site that lead nowhere inside it.

    Links to other hosts are not followed.

    Args:
        site: The folder with the built site.
    """
    site = site.resolve()
    pages = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    broken = []
    for path, page in pages.items():
        # It is shown at any address: its links are from the top of a host.
        if path.name == "404.html":
            continue
        for target in sorted(page.targets):
            if not _exists(site, path, target, pages):
                broken.append(f"{path.relative_to(site)}: {target}")
    return broken


def _read(path: pathlib.Path) -> _Page:
    targets: set[str] = set()
    anchors: set[str] = set()
    for tag in _TAG.findall(path.read_text("utf-8")):
        targets.update(map(html.unescape, _TARGET.findall(tag)))
        anchors.update(map(html.unescape, _ANCHOR.findall(tag)))
    return _Page(targets, anchors)


def _exists(
    site: pathlib.Path,
    path: pathlib.Path,
    target: str,
    pages: dict[pathlib.Path, _Page],
) -> bool:
    parts = urllib.parse.urlsplit(target)
    if parts.scheme or parts.netloc:
        return True
    file = (path.parent / urllib.parse.unquote(parts.path)).resolve()
    file = path if not parts.path else file
    if file.is_dir():
        file /= "index.html"
    if not file.is_file() or not file.is_relative_to(site):
        return False
    anchor = urllib.parse.unquote(parts.fragment)
    return not anchor or file not in pages or anchor in pages[file].anchors
