"""No public name gets lost, and every name that the pages use exists."""

from __future__ import annotations

import importlib
import importlib.util
import json

import pytest

from tests.compatibility import names

FROZEN: names.Names = json.loads(names.FROZEN.read_text("utf-8"))
USED = names.used_names()


@pytest.mark.parametrize("module", FROZEN)
def test_public_names_stay(module):
    found = importlib.import_module(module)
    lost = [name for name in FROZEN[module] if not hasattr(found, name)]
    assert not lost
    exported = getattr(found, "__all__", FROZEN[module])
    assert not set(FROZEN[module]) - set(exported)


@pytest.mark.parametrize("module", FROZEN)
def test_public_parameters_stay(module):
    found = importlib.import_module(module)
    lost = {}
    for name, parameters in FROZEN[module].items():
        value = getattr(found, name)
        missing = set(parameters) - set(names.parameters_of(value))
        if missing and not names.takes_any_keyword(value):
            lost[name] = missing
    assert not lost


def test_exported_names_are_in_the_list():
    new = {
        module: sorted(set(importlib.import_module(module).__all__) - {*FROZEN[module]})
        for module in FROZEN
        if hasattr(importlib.import_module(module), "__all__")
    }
    new = {module: exported for module, exported in new.items() if exported}
    assert not new, "python -m tests.compatibility.make_files adds them"


@pytest.mark.parametrize("place", USED)
def test_names_in_texts_exist(place):
    wrong = []
    for name in sorted(USED[place]):
        if name.startswith("experiments.") and name.count(".") == 1:
            # Binaries define flags when they are imported.
            if importlib.util.find_spec(name) is None:
                wrong.append(name)
            continue
        try:
            names.resolve(name)
        except (ImportError, AttributeError):
            wrong.append(name)
    assert not wrong
