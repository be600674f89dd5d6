"""The studies' pages: their sections, and tables that are as the rows have it."""

from __future__ import annotations

import importlib
import re

import pytest

from experiments.kit.about import SECTIONS, About
from experiments.kit.rows import Rows
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
    start = f"python -m experiments.{study} "
    for name in tables:
        made_by = filling.made_by(study, name)
        *_, blank, last = filling.find_table(f"{study}/{name}").splitlines()
        assert not blank and last.startswith("Made by ") and last.endswith(".")
        assert re.findall(r"`(.*?)`", last) == list(made_by)
        assert all(command.startswith(start) for command in made_by)
        assert made_by or (given[name] == () and "(#command)" in last)


@pytest.mark.parametrize("study", filling.studies())
def test_commands_of_tables_are_those_of_the_rows(study):
    folder = filling.EXPERIMENTS / study
    parts = Rows(folder)
    commands = [filling.made_by(study, name) for name in filling.tables_of(study)]
    for command in {one for several in commands for one in several}:
        given = command.partition(f"experiments.{study} ")[2]
        flags = dict(re.findall(r"--(\w+)=(\S+)", given))
        for part in filter(None, flags.get("parts", "").split(",")):
            alone = command.replace(flags["parts"], part)
            assert parts.read(part)["command"] == alone
        if "study" in flags:
            rows = Rows(folder, flags["study"]).read_all()
            if "mc_samples" in flags:
                rows = [row for row in rows if row.get("ways")]
                own = f"--mc_samples={flags['mc_samples']} "
                assert all(own in row["ways"]["command"] for row in rows)
            seeds = {str(row["config"]["seed"]) for row in rows}
            assert seeds == set(flags.get("seeds", "1").split(",")), command


@pytest.mark.parametrize(
    ("study", "table", "flags"),
    [
        ("averaging", "basin", ["--preset=ptb --parts=basin"]),
        ("averaging", "trajectory", ["--preset=ptb --parts=trajectory,drop,late_drop"]),
        ("imm_logistic", "sweep", ["--preset=paper --parts=rule"]),
        ("imm_lm", "full-induced", ["--study=full --data_dir=DATA"]),
        (
            "mogrifier_lm",
            "variants",
            [
                "--study=variants --data_dir=DATA",
                "--study=cells --seeds=1,2,3 --data_dir=DATA",
            ],
        ),
        ("mi_vae", "cost", []),
    ],
)
def test_tables_name_the_commands_of_their_rows(study, table, flags):
    start = f"python -m experiments.{study} "
    assert filling.made_by(study, table) == tuple(start + given for given in flags)


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
