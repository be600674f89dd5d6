"""Seconds of files of tests: counted, compared with budgets, written as budgets."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from tests import budgets


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "budgets.json"
    path.write_text(json.dumps({"tests/a.py": 10}))
    monkeypatch.setattr(budgets, "FILE", path)
    return path


def _report(nodeid, duration):
    return SimpleNamespace(nodeid=nodeid, duration=duration)


def test_the_seconds_of_a_file_are_those_of_all_its_reports():
    passed = [
        _report("tests/a.py::test_one[x::y]", 1.5),
        _report("tests/b.py::TestB::test_two", 0.25),
    ]
    # Fixtures are reported beside their tests, warnings have no duration.
    others = [_report("tests/a.py::test_one[x::y]", 0.5), SimpleNamespace(nodeid="w")]
    assert budgets.seconds_by_file([passed, others]) == {
        "tests/a.py": 2.0,
        "tests/b.py": 0.25,
    }
    assert budgets.seconds_by_file([]) == {}


def test_files_over_their_budget_are_named(file):
    taken = {"tests/new.py": 3.4, "tests/a.py": 10.6, "tests/b.py": 3.0}
    assert budgets.exceeded(taken) == [
        "tests/a.py took 11 seconds, its budget is 10 (tests/budgets.json).",
        "tests/new.py took 3 seconds, its budget is 3 (tests/budgets.json).",
    ]
    assert budgets.exceeded({"tests/a.py": 10.0}) == []


def test_what_is_written_is_kept_by_the_same_seconds(file):
    taken = {"tests/slow.py": 20.0, "tests/fast.py": 1.9, "tests/near.py": 2.1}
    budgets.write(taken)
    assert json.loads(file.read_text()) == {"tests/near.py": 3, "tests/slow.py": 30}
    assert list(json.loads(file.read_text())) == ["tests/near.py", "tests/slow.py"]
    assert file.read_text().endswith("}\n")
    assert budgets.exceeded(taken) == []
    assert len(budgets.exceeded({"tests/slow.py": 31.0})) == 1
