"""Rooms of the library depend on those above them in BUILD.md's list, and no others."""

from __future__ import annotations

import ast
import pathlib
import re
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parents[1]
_GROUND = "*.py"
# The package's own module imports on demand what it is asked for.
_MODULES = sorted((ROOT / "rlm_tf").rglob("*.py"))
_MODULES.remove(ROOT / "rlm_tf" / "__init__.py")


def rooms() -> list[str]:
    """Returns the rooms of the list in BUILD.md, the lowest first."""
    text = (ROOT / "BUILD.md").read_text("utf-8")
    return re.findall(r"^\| `rlm_tf/([\w*.]+)` \|", text, re.MULTILINE)


def room_of(parts: list[str], known: list[str]) -> str:
    """Returns the room of a module, by its path below the library."""
    name = parts[0] if len(parts) > 1 else f"{parts[0]}.py"
    return name if name in known else _GROUND


def imported(tree: ast.Module) -> Iterator[list[str]]:
    """Gives the paths below the library that a module imports, in functions, too."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports are not followed"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.startswith("rlm_tf."):
                yield name.split(".")[1:]


def without_type_hints(tree: ast.Module) -> ast.Module:
    """Returns the module without what only type checkers import."""
    tree.body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
    ]
    return tree


def test_all_rooms_are_in_the_list():
    found = {path.parent.name for path in ROOT.glob("rlm_tf/*/__init__.py")}
    assert found | {_GROUND, "loading.py"} == set(rooms())
    assert len(rooms()) == len(set(rooms()))


@pytest.mark.parametrize("room", rooms())
def test_dependencies_point_downwards(room):
    known = rooms()
    for path in _MODULES:
        parts = list(path.relative_to(ROOT / "rlm_tf").with_suffix("").parts)
        if room_of(parts, known) != room:
            continue
        tree = without_type_hints(ast.parse(path.read_text("utf-8")))
        for target in imported(tree):
            other = room_of(target, known)
            if other == _GROUND and target[0] in known:
                other = target[0]
            assert known.index(other) <= known.index(room), f"{path}: {target}"


def test_every_kind_of_import_is_seen():
    text = "import rlm_tf.models\nfrom rlm_tf import serving\n"
    text += "def f():\n    from rlm_tf.data.text import vocabulary\n"
    text += "if TYPE_CHECKING:\n    import rlm_tf.loading\n"
    tree = without_type_hints(ast.parse(text))
    assert sorted(imported(tree)) == [
        ["data", "text", "vocabulary"],
        ["models"],
        ["serving"],
    ]
