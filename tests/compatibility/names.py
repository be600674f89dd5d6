"""Public names of the library, and the names that its pages use."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pathlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import rlm_tf
from tests.compatibility.arrays import FILES

ROOT = pathlib.Path(__file__).parents[2]
PAGES = (
    "README.md",
    "EXAMPLES.md",
    "BUILD.md",
    "experiments/README.md",
    "saved_models/README.md",
    "rlm_tf/distillation/README.md",
    *sorted(
        str(path.relative_to(ROOT)) for path in ROOT.glob("experiments/*/README.md")
    ),
)
FROZEN = FILES / "public_names.json"

Names = dict[str, dict[str, list[str]]]

_DOTTED = re.compile(r"\b(?:rlm_tf|experiments|tests)(?:\.[A-Za-z_]\w*)+")
_FROM = re.compile(
    r"^[ >]*from ((?:rlm_tf|experiments)[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE
)


# === Public names ===


def public_names() -> Names:
    """Returns, of every public module, its names with those of their parameters.

    Public modules are the packages, those of the ground floor and those of the
    objectives, which are imported by their own names.
    """
    found: Names = {"rlm_tf": _names_of(rlm_tf)}
    for module in pkgutil.walk_packages(rlm_tf.__path__, "rlm_tf."):
        parents = module.name.split(".")[1:-1]
        if module.ispkg or not parents or parents == ["objectives"]:
            names = _names_of(importlib.import_module(module.name))
            if names:
                found[module.name] = names
    return found


def _names_of(module: Any) -> dict[str, list[str]]:
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            name
            for name, value in vars(module).items()
            if getattr(value, "__module__", None) == module.__name__
        ]
    return {
        name: parameters_of(getattr(module, name))
        for name in sorted(names)
        if not name.startswith("_")
    }


def parameters_of(value: Any) -> list[str]:
    """Returns the names by which a function or a class takes its arguments."""
    return [
        name
        for name, parameter in _signature(value).items()
        if name != "self"
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    ]


def takes_any_keyword(value: Any) -> bool:
    """Returns whether a function or a class hands on other keyword arguments."""
    kinds = [parameter.kind for parameter in _signature(value).values()]
    return inspect.Parameter.VAR_KEYWORD in kinds


def _signature(value: Any) -> dict[str, inspect.Parameter]:
    if not callable(value):
        return {}
    if inspect.isclass(value) and not hasattr(value, "_fields"):
        value = value.__init__
    try:
        return dict(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return {}


def freeze() -> None:
    """Adds what is public now to the file of what has to stay public."""
    known: Names = json.loads(FROZEN.read_text("utf-8")) if FROZEN.exists() else {}
    for module, names in public_names().items():
        known[module] = {**names, **known.get(module, {})}
    FROZEN.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", "utf-8")


# === Names in texts ===


def used_names() -> dict[str, set[str]]:
    """Returns dotted names by the page or module whose text uses them."""
    found = {page: _in_text((ROOT / page).read_text("utf-8")) for page in PAGES}
    for path in sorted((ROOT / "rlm_tf").rglob("*.py")):
        found[str(path.relative_to(ROOT))] = set().union(
            *map(_in_text, _docstrings(path))
        )
    return {place: names for place, names in found.items() if names}


def _in_text(text: str) -> set[str]:
    imported = {
        f"{module}.{name.split(' as ')[0].strip()}"
        for module, names in _FROM.findall(text)
        for name in names.split("#")[0].strip("()").split(",")
        if name.strip()
    }
    # A file's name is no module's.
    dotted = {name for name in _DOTTED.findall(text) if not name.endswith(".py")}
    return imported | dotted


def _docstrings(path: pathlib.Path) -> Iterator[str]:
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, kinds):
            yield ast.get_docstring(node) or ""


def resolve(name: str) -> Any:
    """Returns the module, or what is in one, that a dotted name means.

    Raises:
        ModuleNotFoundError, AttributeError: If there is no such thing.
    """
    parts = name.split(".")
    found = importlib.import_module(parts[0])
    for index, part in enumerate(parts[1:], start=2):
        if not hasattr(found, part):
            importlib.import_module(".".join(parts[:index]))
        found = getattr(found, part)
    return found
