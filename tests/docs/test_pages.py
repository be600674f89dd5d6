"""Every public name has a docstring and a page; links and names lead where they should.

No MkDocs here: what it makes of the pages is in test_site.py.
"""

from __future__ import annotations

import pathlib

import pytest

from docs.built_pages import broken_links
from docs.links import link_names, local_targets, map_links, page_of
from docs.page_texts import page_texts
from docs.papers import read_rows, with_anchors
from docs.site_map import SiteMap
from tests.compatibility.names import public_names

ROOT = pathlib.Path(__file__).parents[2]
SITE = SiteMap(ROOT)
TEXTS = page_texts(SITE)


def test_names_are_those_that_can_be_imported():
    imported = {
        f"{module}.{name}" for module, names in public_names().items() for name in names
    }
    assert imported == {name.path for name in SITE.names}


def test_every_public_name_has_a_docstring():
    assert not [name.path for name in SITE.names if not name.docstring]


def test_every_public_name_has_a_page_and_a_line_in_its_module():
    for name in SITE.names:
        page = SITE.pages[name]
        assert f"::: {name.path}\n" in TEXTS[page] or f"`{name.path}`" in TEXTS[page]
        assert f"[`{name.name}`]" in TEXTS[f"{page_folder(name.module)}/README.md"]
    # No two where capitals are not told from small letters.
    assert len({page.lower() for page in TEXTS}) == len(TEXTS)


def page_folder(module):
    return "/".join(["api", *module.split(".")[1:]])


def test_class_equation_and_study_lead_to_each_other():
    page = "api/models/SampledContexts.md"
    (row,) = (row for row in SITE.rows if row.equation == "(14), (21)")
    assert f"[(14), (21)](../../PAPERS.md#{row.anchor})" in TEXTS[page]
    assert "(../../experiments/" in TEXTS[page]
    assert f'<a id="{row.anchor}"></a>(14), (21)' in TEXTS["PAPERS.md"]
    assert SITE.target("rlm_tf.models.SampledContexts") == page
    study = TEXTS["experiments/imm_consistency/README.md"]
    assert "## Equations that it uses" in study
    assert "`rlm_tf.objectives.imm.induced_log_probs`" in study


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("rlm_tf.models", "api/models/README.md"),
        ("rlm_tf/objectives/imm.py", "api/objectives/imm/README.md"),
        ("rlm_tf.models.InducedModelMatching", "api/models/InducedModelMatching.md"),
        ("InBatchContexts(min_count=1)", "api/models/InBatchContexts.md"),
        # Where it is defined, an old name, and a member.
        ("rlm_tf.loading.load_model", "api/load_model.md"),
        ("rlm_tf.training.released_graphs", "api/training/free_graphs_on_exit.md"),
        ("rlm_tf.models.ObjectiveModel.parts", "api/models/ObjectiveModel.md"),
        ("experiments.imm_consistency", "experiments/imm_consistency/README.md"),
        ("rlm_tf.none", None),
        ("model", None),
        ("tests/none.py::test_none", None),
    ],
)
def test_names_lead_to_pages(text, target):
    assert SITE.target(text) == target


def test_tests_lead_to_their_line():
    target = SITE.target(
        "tests/objectives/test_imm.py::test_one_sample_is_soft_cross_entropy"
    )
    path, _, line = target.removeprefix("source/").partition(".md#line-0-")
    lines = (ROOT / path).read_text("utf-8").splitlines()
    assert lines[int(line) - 1].startswith("def test_one_sample_is_soft_cross_entropy(")


def test_links_are_changed_outside_code_only():
    page = "[a](x/y.md#z) `[b](x)` [c](https://host/x) [d](#e)\n```\n[f](x)\n```\n"
    assert local_targets(page) == ["x/y.md"]
    changed = map_links(page, lambda path: f"to/{path}")
    assert changed == page.replace("x/y.md#z", "to/x/y.md#z")


def test_folders_mean_their_page():
    page = "experiments/imm_consistency/README.md"
    assert page_of(ROOT, "PAPERS.md", "experiments/imm_consistency") == page
    assert page_of(ROOT, page, "figures") == page
    assert page_of(ROOT, page, "../../BUILD.md") == "BUILD.md"


def test_names_in_text_become_links_and_others_do_not():
    page = '<p><code>a</code> <a href="y"><code>a</code></a> <code>b</code></p>'
    page += "<pre><code>a</code></pre>"
    linked = link_names(page, {"a": "x?1&2"}.get)
    assert linked == page.replace(
        "<code>a</code>", '<a href="x?1&amp;2"><code>a</code></a>', 1
    )


def test_rows_are_counted_through_all_tables():
    page = (
        "## One\n\n| equation | b | c | d | e |\n| --- | --- | --- | --- | --- |\n"
        "| (1) | says | `rlm_tf.a.b`, `x` | t | [s](experiments/s) |\n\n"
        "## Two\n\n| (2) | says | — | t | — |\n| two | columns |\n"
    )
    first, second = read_rows(page)
    assert (first.document, first.named, first.studies) == (
        "One",
        ["rlm_tf.a.b"],
        ["experiments/s"],
    )
    assert (second.document, second.named, second.studies) == ("Two", [], [])
    assert with_anchors(page).count("<a id=") == 2


def test_broken_links_of_built_pages_are_found(tmp_path):
    (tmp_path / "a b.html").write_text('<p id="there">x &lt;a href="code"&gt;</p>')
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/index.html").write_text(
        '<a href="../a%20b.html#there">a</a> <a href="https://host/x">b</a>'
        '<a href="../folder/">c</a> <a href="#here" id="here">d</a>'
    )
    assert broken_links(tmp_path) == []
    (tmp_path / "folder/index.html").write_text(
        '<a href="../a%20b.html#nowhere">a</a> <img src="none.png">'
        '<a href="../../outside.html">c</a>'
    )
    assert broken_links(tmp_path) == [
        "folder/index.html: ../../outside.html",
        "folder/index.html: ../a%20b.html#nowhere",
        "folder/index.html: none.png",
    ]
