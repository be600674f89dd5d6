"""The site that MkDocs builds: it is whole, and a mistake fails."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = {
    "README.md": "# Home\n\n[papers](PAPERS.md#papers), `rlm_tf.double`\n",
    "EXAMPLES.md": "# Examples\n",
    "PAPERS.md": "# Papers\n",
    "BUILD.md": "# Build\n\n![plot](plot.png)\n",
    "plot.png": "",
    "saved_models/README.md": "# Serving\n",
    "experiments/README.md": "# Studies\n",
    "rlm_tf/distillation/README.md": "# Teachers and students\n",
    "rlm_tf/__init__.py": (
        '"""A library."""\n\n__all__ = ["double"]\n\n\n'
        'def double(x: float) -> float:\n    """Returns twice a number."""\n'
        "    return 2 * x\n"
    ),
}

pytestmark = [pytest.mark.landing, pytest.mark.docs, pytest.mark.slow]


@pytest.fixture(autouse=True, scope="module")
def mkdocs():
    """MkDocs and its plug-ins; skips where they are not installed."""
    for package in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(
            package,
            reason="the optional extra `docs` (mkdocs, mkdocs-material, mkdocstrings) "
            "is not installed",
        )


def build(root, site):
    options = ["--strict", "--config-file", "docs/mkdocs.yml"]
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", *options, "--site-dir", str(site)],
        cwd=root,
        capture_output=True,
        text=True,
    )


def test_the_whole_site_builds(tmp_path):
    built = build(ROOT, tmp_path)
    assert built.returncode == 0, built.stderr
    page = (tmp_path / "api/models/InducedModelMatching.html").read_text("utf-8")
    assert re.search(r'href="\.\./\.\./PAPERS\.html#row-\d+">\(11\)', page)
    assert re.search(r'href="\.\./\.\./experiments/(\w+/)?index\.html">imm_lm', page)
    papers = (tmp_path / "PAPERS.html").read_text("utf-8")
    assert 'href="api/models/InducedModelMatching.html"' in papers
    assert 'href="source/tests/objectives/test_imm.py.html#line-0-' in papers
    # Nothing of a page is fetched from elsewhere.
    for path in tmp_path.rglob("*.html"):
        fetched = re.findall(
            r"<(?:script|link|img)\b[^>]*(?:src|href)=\"http[^\"]*", path.read_text()
        )
        assert not fetched, path


@pytest.mark.parametrize(
    ("page", "old", "new", "message"),
    [
        ("README.md", "", "", None),
        ("README.md", "PAPERS.md#papers", "PAPER.md", "PAPER.md"),
        ("README.md", "#papers", "#equations", "an anchor '#equations'"),
        ("README.md", "[papers]", '<a href="x.html">x</a> [papers]', "broken links"),
        ("BUILD.md", "plot.png", "figure.png", "figure.png"),
        ("rlm_tf/__init__.py", '    """Returns', "    # Returns", "rlm_tf.double"),
    ],
    ids=["sound", "page", "anchor", "html", "image", "docstring"],
)
def test_a_mistake_fails(page, old, new, message, tmp_path):
    root = tmp_path / "root"
    shutil.copytree(ROOT / "docs", root / "docs")
    for path, text in PAGES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        text = text.replace(old, new) if path == page else text
        (root / path).write_text(text, encoding="utf-8")
    built = build(root, tmp_path / "site")
    if message is None:
        assert built.returncode == 0, built.stderr
        home = (tmp_path / "site/index.html").read_text("utf-8")
        assert '<a href="api/double.html"><code>rlm_tf.double</code></a>' in home
    else:
        assert built.returncode != 0
        assert message in built.stderr
