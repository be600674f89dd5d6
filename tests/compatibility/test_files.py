"""Files of earlier versions load, compute what they computed and train on."""

from __future__ import annotations

import inspect
from typing import Any

import keras
import numpy as np
import pytest

from rlm_tf import distillation, layers, metrics, models, restricted
from rlm_tf.data import Vocabulary
from rlm_tf.restricted import KneserNey, read_arpa
from tests.compatibility import arrays, cases, inputs
from tests.compatibility.arrays import assert_close
from tests.compatibility.cases import CASES, TOKENS, Case
from tests.compatibility.make_files import results_of
from tests.compatibility.uses import USES

# Graphs are no claim of these tests, and the files were made without.
pytestmark = pytest.mark.eager


@pytest.fixture(scope="module")
def parts() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Layers, metrics and restricted models by name, and what they computed."""
    found: dict[str, Any] = {}
    known: dict[str, np.ndarray] = {}
    for file in arrays.FILES.glob("parts_*.keras"):
        shelf = keras.saving.load_model(file, safe_mode=True)
        found |= {name: getattr(shelf, name) for name in shelf.names}
        known |= arrays.read(file.stem)
    return found, known


def _known(case: Case) -> tuple[Any, Any, dict[str, np.ndarray]]:
    stored = arrays.read(case.name)
    example, batch = (arrays.nested(name, stored) for name in ("example", "batch"))
    given = ("example", "batch")
    known = {k: v for k, v in stored.items() if k.partition("/")[0] not in given}
    return example, batch, known


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_model_computes_and_trains_as_it_did(case):
    example, batch, known = _known(case)
    path = arrays.FILES / f"{case.name}.keras"
    model = keras.saving.load_model(path, safe_mode=True)
    assert type(model).__name__ == case.name.partition("_")[0]
    assert model.optimizer.iterations.numpy() == 2
    assert_close(results_of(model, case, example, batch), known, case.tolerance)


@pytest.mark.parametrize("name", USES)
def test_a_part_computes_as_it_did(parts, name):
    found, stored = parts
    known = {key: value for key, value in stored.items() if key.split("/")[0] == name}
    assert known and type(found[name]).__name__ == name
    assert_close(arrays.flat(name, USES[name](found[name])), known, 1e-5)


def test_tables_of_ngrams_give_the_same():
    known = arrays.read("tables")
    model = KneserNey.load(arrays.FILES / "kneser_ney.npz")
    bigram = read_arpa(arrays.FILES / "bigram.arpa", cases.WORDS)
    found = {
        "kneser_ney": model.log_probs(inputs.CONTEXTS),
        "bigram": bigram.log_probs(inputs.CONTEXTS[:, :1]),
    }
    # The text file has seven digits.
    assert_close(found, known, 1e-5)


@pytest.mark.parametrize("rule", TOKENS)
def test_vocabularies_have_the_same_tokens(rule):
    vocabulary = Vocabulary.load(arrays.FILES / f"vocabulary_{rule}.txt")
    assert vocabulary.rule == rule
    assert list(vocabulary.tokens) == TOKENS[rule]


def test_every_public_class_has_a_file():
    kept = {case.name.partition("_")[0] for case in CASES} | set(USES)
    public = {
        name
        for module in (distillation, layers, metrics, models, restricted)
        for name, value in inspect.getmembers(module, inspect.isclass)
        if issubclass(value, keras.Layer | keras.metrics.Metric)
        and keras.saving.get_registered_name(value).startswith("rlm_tf>")
    }
    # A new class gets one by `python -m tests.compatibility.make_files`.
    assert not public - kept
