"""Rows of results: one file, several processes, files of older versions."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from experiments.kit import rows as rows_module
from experiments.kit.rows import Rows, read_studies
from tests.experiments.binaries import ROOT


def test_rows_are_kept_by_name_and_study(tmp_path):
    rows = Rows(tmp_path / "new")
    assert rows.names() == [] and "a" not in rows
    rows.write("a", {"value": [1.5, None]})
    rows.of("main").write("a", {"value": 2})
    rows.of("main").write("b", {"value": 3})
    assert rows.names() == ["a"] and rows.of("main").names() == ["a", "b"]
    assert rows.read("a") == {"value": [1.5, None]}
    assert rows.of("main").read("a") == {"value": 2}
    # What a reader does to its row changes nobody else's.
    rows.read("a")["value"].append(2)
    assert rows.read("a") == {"value": [1.5, None]}
    rows.of("main").write("a", {"value": 4})
    assert [row["value"] for row in rows.of("main").read_all()] == [4, 3]
    rows.of("main").remove(["a", "gone"])
    assert rows.of("main").names() == ["b"] and rows.names() == ["a"]
    with pytest.raises(KeyError, match="has no row main/a"):
        rows.of("main").read("a")


def test_what_another_object_has_written_is_seen(tmp_path):
    one, other = Rows(tmp_path), Rows(tmp_path)
    for number in range(3):
        (one, other)[number % 2].write(str(number), {"n": number})
        assert one.names() == other.names() == [str(n) for n in range(number + 1)]


def test_files_of_older_versions_are_read_and_given_up_for_new_rows(tmp_path):
    old = tmp_path / "main" / "a.json"
    old.parent.mkdir()
    old.write_text('{"value": 1}')
    rows = Rows(tmp_path, "main")
    assert "a" in rows and rows.names() == ["a"]
    assert rows.read("a") == {"value": 1} and rows.place("a") == str(old)
    rows.write("b", {"value": 2})
    assert rows.names() == ["b", "a"]
    rows.write("a", {"value": 3})
    assert rows.read("a") == {"value": 3} and old.read_text() == '{"value": 1}'
    assert read_studies(tmp_path, ["main", "none"], ("value",)) == {
        "main": [{"value": 3}, {"value": 2}],
        "none": [],
    }
    rows.remove(["a"])
    assert "a" not in rows and not old.exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "is damaged"),
        (b"\xff", "is damaged"),
        (b"[" * 100_000, "is damaged"),
        (b'["name", "row"]', "expected a JSON object, found a list"),
        (b'{"name": "b"}', "found one without row"),
        (b'{"name": "b", "row": 3}', "expected a name and a JSON object"),
    ],
)
def test_a_damaged_line_is_named_with_the_remedy(tmp_path, line, said):
    rows = Rows(tmp_path)
    rows.write("a", {"value": 1})
    with rows.path.open("ab") as file:
        file.write(line + b"\n")
    for act in (rows.names, lambda: rows.read("a"), lambda: rows.write("c", {})):
        with pytest.raises(ValueError, match=said) as caught:
            act()
        assert str(rows.path) in str(caught.value) and "remove it" in str(caught.value)
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 300
    assert rows.path.read_bytes().endswith(line + b"\n")


def test_what_a_row_lacks_deep_inside_is_named(tmp_path):
    rows = Rows(tmp_path)
    rows.write("a", {"perplexity": 5})
    message = r"\(row a\) is damaged .*found one without perplexity\.valid\)"
    with pytest.raises(ValueError, match=message):
        rows.read("a", ("perplexity.valid",))


def test_what_cannot_be_written_changes_nothing(tmp_path, monkeypatch):
    rows = Rows(tmp_path)
    rows.write("a", {"value": 1})
    with pytest.raises(ValueError, match=r"\(row b\) is not written: x\.0 = inf"):
        rows.write("b", {"x": [float("inf")]})

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(rows_module.pathlib.Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        rows.write("a", {"value": 2})
    assert rows.read("a") == {"value": 1}
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == [
        "rows.jsonl"
    ]


def test_rows_of_several_processes_are_all_there(tmp_path):
    program = (
        "import sys\n"
        "from experiments.kit.rows import Rows\n"
        f"rows = Rows({str(tmp_path)!r}, 'main')\n"
        "for number in range(40):\n"
        "    rows.write(f'{sys.argv[1]}-{number}', {'n': number})\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program, name], cwd=ROOT)
        for name in ("a", "b")
    ]
    assert [process.wait() for process in processes] == [0, 0]
    lines = (tmp_path / "rows.jsonl").read_text().splitlines()
    found = {json.loads(line)["name"] for line in lines}
    assert len(lines) == 80
    assert found == {f"main/{name}-{n}" for name in "ab" for n in range(40)}
