"""The public names of the library, read from its source: nothing is imported."""

from __future__ import annotations

import ast
import functools
import pathlib
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

LIBRARY = "rlm_tf"


class PublicName(NamedTuple):
    """A name that users import.

    Attributes:
        path: Where they import it from, and its name.
        definition: Where it is defined, and its name there.
        docstring: Its docstring, stripped of indentation; empty where there is none.
    """

    path: str
    definition: str
    docstring: str

    @property
    def module(self) -> str:
        """The public module that exports it."""
        return self.path.rpartition(".")[0]

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition(".")[2]

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring, in one line."""
        return " ".join(self.docstring.split("\n\n")[0].split())


class Source:
    """Modules of a repository by their dotted names.

    Args:
        root: The top of the repository.
    """

    def __init__(self, root: pathlib.Path):
        self.root = root
        self.tree = functools.cache(self._tree)

    def file(self, module: str) -> pathlib.Path | None:
        """Returns the file of a module or package, None where there is none."""
        base = self.root.joinpath(*module.split("."))
        for path in (base / "__init__.py", base.with_suffix(".py")):
            if path.is_file():
                return path
        return None

    def is_package(self, module: str) -> bool:
        """Returns whether a module is a folder."""
        return self.root.joinpath(*module.split(".")).is_dir()

    def _tree(self, module: str) -> ast.Module:
        path = self.file(module)
        if path is None:
            raise ModuleNotFoundError(f"{module}: no such module in {self.root}")
        return ast.parse(path.read_text("utf-8"))

    def docstring(self, module: str) -> str:
        """Returns the docstring of a module, empty where there is none."""
        return ast.get_docstring(self.tree(module)) or ""

    def public_modules(self) -> list[str]:
        """Returns modules whose names are public, sorted.

        They are the packages, the ground floor, and the objectives, which are imported
        by their own names.
        """
        found = []
        for path in sorted((self.root / LIBRARY).rglob("*.py")):
            parts = path.relative_to(self.root).with_suffix("").parts
            if parts[-1] == "__init__":
                found.append(".".join(parts[:-1]))
            elif len(parts) == 2 or parts[1:-1] == ("objectives",):
                found.append(".".join(parts))
        return sorted(module for module in found if self.exported(module))

    def exported(self, module: str) -> list[str]:
        """Returns the names that a module exports: `__all__`, or what it defines."""
        defined = []
        for node in self.tree(module).body:
            if isinstance(node, ast.Assign) and _targets(node) == ["__all__"]:
                listed = ast.literal_eval(node.value)
                return sorted(name for name in listed if not name.startswith("_"))
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                defined.append(node.name)
        return sorted(name for name in defined if not name.startswith("_"))

    def names(self) -> list[PublicName]:
        """Returns every public name, once for each module that exports it."""
        return [
            self.public_name(module, name)
            for module in self.public_modules()
            for name in self.exported(module)
        ]

    def public_name(self, module: str, name: str) -> PublicName:
        """Returns what a module calls by a name, wherever it is defined.

        Raises:
            LookupError: If the source of the module does not tell.
        """
        where, original, docstring = self._definition(module, name)
        return PublicName(f"{module}.{name}", f"{where}.{original}", docstring)

    def _definition(self, module: str, name: str) -> tuple[str, str, str]:
        body = self.tree(module).body
        for index, node in enumerate(body):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
                if _is_overload(node):
                    continue
                return module, name, ast.get_docstring(node) or ""
            if name in _targets(node):
                value = getattr(node, "value", None)
                if isinstance(value, ast.Name):
                    # An old name of what has a new one.
                    return self._definition(module, value.id)
                return module, name, _string(body[index + 1 : index + 2])
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return self._definition(node.module, alias.name)
        raise LookupError(f"{module}.{name} is exported and not defined")

    def line(self, dotted: str) -> tuple[pathlib.Path, int] | None:
        """Returns the file and the line of a definition or module, None if unknown."""
        parts = dotted.split(".")
        for split in range(len(parts), 0, -1):
            path = self.file(".".join(parts[:split]))
            if path is not None:
                number = line_of(ast.parse(path.read_text("utf-8")), parts[split:])
                return None if number is None else (path, number)
        return None


def _is_overload(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Returns whether a definition only tells type checkers of a signature."""
    decorators = (ast.unparse(decorator) for decorator in node.decorator_list)
    return any(name.rpartition(".")[2] == "overload" for name in decorators)


def line_of(tree: ast.Module, names: list[str]) -> int | None:
    """Returns the line on which a function, class or member of one is defined."""
    body, number = tree.body, 1
    for name in names:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
                body, number = node.body, node.lineno
                break
        else:
            return None
    return number


def pages(names: list[PublicName]) -> dict[PublicName, str]:
    """Returns the page of every public name; one that has two shares a page.

    The page is that of the shortest path, or of the one where the name is defined.
    """
    by_definition = defaultdict(list)
    for name in names:
        by_definition[name.definition].append(name)
    found: dict[PublicName, str] = {}
    taken: set[str] = set()
    for same in by_definition.values():
        first = min(same, key=_rank)
        page = f"{folder(first.module)}/{first.name}"
        # Some file systems do not tell capitals from small letters.
        if page.lower() in taken:
            page += "-function"
        taken.add(page.lower())
        found.update(dict.fromkeys(same, f"{page}.md"))
    return found


def _rank(name: PublicName) -> tuple[int, bool, str]:
    return name.path.count("."), name.path != name.definition, name.path


def folder(module: str) -> str:
    """Returns the folder with the pages of a public module."""
    return "/".join(["api", *module.split(".")[1:]])


def _targets(node: ast.stmt) -> list[str]:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return list(_names(targets))


def _names(targets: list[ast.expr]) -> Iterator[str]:
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id


def _string(following: list[ast.stmt]) -> str:
    for node in following:
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return value.value
    return ""
