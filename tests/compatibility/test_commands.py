"""Every command that a page or a row of results gives can still be given."""

from __future__ import annotations

import re

import pytest

from experiments.pages import filling
from tests.compatibility import commands
from tests.compatibility.names import PAGES, ROOT

RECORDED = commands.recorded_commands()
# Commands that do not hold any more, by binary and flags, with the reason.
GIVEN_UP: dict[tuple[str, str], str] = {}


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_commands_are_valid(name, tmp_path, monkeypatch):
    commands.stand_in_folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    # A binary may set it.
    monkeypatch.setenv("RLM_DATA_DIR", "DATA")
    with commands.loaded(name) as binary:
        wrong = {
            f"{place}: {given}": problem
            for given, place in RECORDED[name].items()
            if (name, given) not in GIVEN_UP
            and (problem := binary.problem(given)) is not None
        }
        assert "unknown" in str(binary.problem("--unknown=1")).lower()
    assert not wrong


def test_there_are_commands_of_every_kind():
    places = {place for given in RECORDED.values() for place in given.values()}
    assert {"README.md", "BUILD.md", "Makefile", "saved_models/README.md"} <= places
    assert sum("rows.jsonl: " in place for place in places) > 200
    for name, given in GIVEN_UP:
        assert given in RECORDED[name]


@pytest.mark.parametrize("study", filling.studies())
def test_commands_that_made_tables_are_among_them(study):
    start = f"python -m experiments.{study} "
    for name in filling.tables_of(study):
        for command in filling.made_by(study, name):
            assert command.removeprefix(start) in RECORDED[study], command


def test_targets_of_make_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        used = re.findall(r"(?:`|^)make ([a-z -]+?)(?:`|  |$)", text, re.MULTILINE)
        assert set(" ".join(used).split()) <= targets, page
