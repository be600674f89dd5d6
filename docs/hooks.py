"""Hooks of MkDocs, which make every page of the site.

The pages of the repository stay where they are and keep their paths in the site, so
that links between them work in both. Every public name gets a page, with the equations
and studies that PAPERS.md names it for; source files that pages name are shown, too.
"""

from __future__ import annotations

import pathlib
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, InclusionLevel

from docs.built_pages import broken_links
from docs.links import link_names
from docs.page_texts import page_texts, source_texts
from docs.public_names import LIBRARY
from docs.site_map import PAPERS, STUDIES, SiteMap, overview

SITE = SiteMap(pathlib.Path(__file__).parents[1])


def on_config(config: Any) -> Any:
    """Lays out the navigation; fails if a public name has no docstring."""
    undocumented = [name.path for name in SITE.names if not name.docstring]
    if undocumented:
        raise PluginError(f"public names without docstring: {', '.join(undocumented)}")
    # In place of what the theme would fetch from a network.
    config.extra["polyfills"] = ["search_in_files.js"]
    config.nav = [
        {"Home": "README.md"},
        {"Papers": PAPERS},
        {"Studies": [STUDIES, *({page.split("/")[1]: page} for page in SITE.studies)]},
        {
            "Use": [
                "EXAMPLES.md",
                "BUILD.md",
                {"Serving": "saved_models/README.md"},
                {"From keras.distillation": "rlm_tf/distillation/README.md"},
            ]
        },
        {"Library": _library()},
    ]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds all pages, and the files that they link to."""
    for page, text in page_texts(SITE).items():
        files.append(File.generated(config, page, content=text))
    for page, text in source_texts(SITE).items():
        hidden = InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, page, content=text, inclusion=hidden))
    for shown, path in SITE.shown.items():
        if shown == path:
            source = str(SITE.root / path)
            files.append(File.generated(config, path, abs_src_path=source))
    return files


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Makes links of names in code."""

    def url(text: str) -> str | None:
        target, sign, anchor = (SITE.target(text) or "").partition("#")
        if not target or target == page.file.src_uri:
            return None
        file = files.get_file_from_path(target)
        return file.url_relative_to(page.file) + sign + anchor

    return link_names(html, url)


def on_post_build(config: Any) -> None:
    """Fails if a link in the built pages is broken."""
    broken = broken_links(pathlib.Path(config.site_dir))
    if broken:
        raise PluginError("broken links:\n" + "\n".join(broken))


def _library() -> list[Any]:
    """Returns the navigation of public names, grouped by package."""
    packages: list[Any] = []
    groups: dict[str, list[Any]] = {"objectives": [], "ground floor": []}
    for module, names in sorted(SITE.members.items()):
        section: list[Any] = [overview(module)]
        section += [
            {name.name: SITE.pages[name]} for name in names if SITE.has_own_page(name)
        ]
        entry = {module.split(".")[-1]: section}
        if module == LIBRARY:
            packages += section
        elif SITE.source.is_package(module):
            packages.append(entry)
        elif module.startswith(f"{LIBRARY}.objectives."):
            groups["objectives"].append(entry)
        else:
            groups["ground floor"].append(entry)
    return [*packages, *({name: group} for name, group in groups.items() if group)]
