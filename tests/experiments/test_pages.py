"""The studies' pages: their sections, and tables that are as the rows have it."""

from __future__ import annotations

import importlib
import re

import pytest

from experiments.kit.about import SECTIONS, About
from experiments.pages import filling

_OF_STUDIES = [filling.EXPERIMENTS / name / "README.md" for name in filling.studies()]


def _name(path):
    return path.parent.name


def _nothing(name):
    return ""


def _filled(text, place):
    return filling.filled(text, filling.find_table, filling.find_value, place)


@pytest.mark.parametrize("page", filling.pages(), ids=_name)
def test_tables_are_as_the_rows_have_it(page):
    text = page.read_text("utf-8")
    assert _filled(text, page.name) == text


@pytest.mark.parametrize("page", _OF_STUDIES, ids=_name)
def test_a_study_has_its_sections_in_order(page):
    text = page.read_text("utf-8")
    assert tuple(re.findall(r"^## (.*)$", text, re.MULTILINE)) == SECTIONS
    assert (
        len(re.findall(r"^# ", re.sub(r"```.*?```", "", text, flags=re.S), re.M)) == 1
    )


@pytest.mark.parametrize("page", _OF_STUDIES, ids=_name)
def test_all_tables_of_a_study_are_shown_on_its_page_and_made_from_rows(page):
    text = page.read_text("utf-8")
    tables = [f"{_name(page)}/{own}" for own in filling.tables_of(_name(page))]
    assert sorted(filling.names_in(text)) == sorted(tables)
    results = text[text.index("## Results") : text.index("## Cost")]
    by_hand = filling.filled(results, _nothing, _nothing, page.name)
    assert not re.search(r"^\|", by_hand, re.MULTILINE)


@pytest.mark.parametrize("study", filling.studies())
def test_tables_say_which_command_made_them(study):
    tables = filling.tables_of(study)
    given = getattr(filling.page_of(study), "MADE_BY", {})
    assert given.keys() <= tables.keys()
    start = f"python -m experiments.{study}"
    for name in tables:
        command = filling.made_by(study, name)
        assert command.startswith(start) or given.get(name) == ""
        last = filling.find_table(f"{study}/{name}").splitlines()[-1]
        assert not command or last == f"Made by `{command}`."


def test_parts_name_the_command_of_their_row():
    found = filling.made_by("averaging", "basin")
    assert found == "python -m experiments.averaging --preset=ptb --parts=basin"
    assert filling.made_by("imm_lm", "main").endswith(" --data_dir=DATA")
    assert "--study=full" in filling.made_by("imm_lm", "full-induced")


@pytest.mark.parametrize("study", filling.studies())
def test_a_study_has_a_line_for_the_index(study):
    page = importlib.import_module(f"experiments.{study}.page")
    assert isinstance(page.ABOUT, About) and all(page.ABOUT)
    line = page.headline(filling.EXPERIMENTS / study)
    assert line and "\n" not in line and "|" not in line


def test_what_is_between_markers_is_replaced_and_nothing_else():
    text = "a\n<!-- table s/x -->\nold\n<!-- end -->\n"
    text += "b <!-- value s/v -->2<!-- end --> c\n"
    text += "<!-- table s/y -->\n<!-- end -->"
    tables = {"s/x": "| 1 |", "s/y": "two\nlines\n"}
    found = filling.filled(text, tables.get, {"s/v": "3 %"}.get, "page")
    assert found == (
        "a\n<!-- table s/x -->\n| 1 |\n<!-- end -->\n"
        "b <!-- value s/v -->3 %<!-- end --> c\n"
        "<!-- table s/y -->\ntwo\nlines\n<!-- end -->"
    )
    assert filling.names_in(text) == ["s/x", "s/y"]


@pytest.mark.parametrize(
    "text",
    [
        "<!-- table s/x -->\n",
        "<!-- end -->",
        "<!-- table s/x -->\n<!-- table s/y -->\n<!-- end -->",
        "<!-- table s/x --> <!-- end -->",
        "<!-- value s/x -->\n<!-- end -->",
        "<!-- table s/x -->\n<!-- value s/v -->\n<!-- end -->",
    ],
)
def test_markers_without_a_partner_are_named(text):
    with pytest.raises(ValueError, match=r"page\.md: each .* needs one '<!--"):
        filling.filled(text, _nothing, _nothing, "page.md")


def test_unknown_values_are_named():
    message = "page.md: imm_consistency has no value 'x'; it has "
    with pytest.raises(ValueError, match=message):
        _filled("a <!-- value imm_consistency/x --><!-- end -->", "page.md")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing/x", "page.md: no study 'nothing'; there are "),
        ("imm_consistency/x", "imm_consistency has no table 'x'; it has bias, curve"),
    ],
)
def test_unknown_tables_are_named(name, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        _filled(f"<!-- table {name} -->\n<!-- end -->", "page.md")
