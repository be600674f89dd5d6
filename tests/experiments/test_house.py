"""Which rooms of `experiments` may use which."""

from __future__ import annotations

import ast
import pathlib
import re

import pytest

import experiments

_ROOT = pathlib.Path(experiments.__file__).parent
# Commands without a study of their own: they report on, tune or export those of others.
_COMMANDS = {
    "export": {"imm_lm"},
    "imm_report": {"imm_lm"},
    "mogrifier_report": {"mogrifier_lm"},
    "tune": {"mogrifier_lm"},
}
_FOLDERS = sorted(path.parent.name for path in _ROOT.glob("*/__init__.py"))


def _rooms_used(folder: pathlib.Path) -> set[str]:
    """Returns the rooms that modules of a folder import, within functions, too."""
    rooms = set()
    for path in folder.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        # What is imported by its name in a string.
        rooms |= set(re.findall(r"[\"\']experiments\.(\w+)\.\w", text))
        for node in ast.walk(ast.parse(text)):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module == "experiments":
                names = [f"experiments.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{path}: relative imports are not followed"
                names = [node.module or ""]
            rooms |= {
                name.split(".")[1] for name in names if name.startswith("experiments.")
            }
    return rooms


@pytest.mark.parametrize("name", _FOLDERS)
def test_a_study_uses_the_kit_and_itself(name):
    allowed = {name, *_COMMANDS.get(name, set())} | (
        {"kit"} if name != "kit" else set()
    )
    assert _rooms_used(_ROOT / name) <= allowed


def test_every_import_of_another_room_is_seen(tmp_path):
    text = "import experiments.a.b\nfrom experiments import c\n\ndef f():\n"
    text += "    from experiments.d import e\n    import rlm_tf.models\n"
    (tmp_path / "module.py").write_text(text)
    (tmp_path / "below").mkdir()
    by_name = 'import_module("experiments.f.g")\n'
    (tmp_path / "below" / "module.py").write_text(by_name)
    assert _rooms_used(tmp_path) == {"a", "c", "d", "f"}
    (tmp_path / "module.py").write_text("from ..imm_lm import row\n")
    with pytest.raises(AssertionError, match="relative imports"):
        _rooms_used(tmp_path)


def test_studies_and_commands_have_a_main():
    assert all(
        (_ROOT / name / "__main__.py").is_file() for name in _FOLDERS if name != "kit"
    )
