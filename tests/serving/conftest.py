"""One export that all tests of signatures ask."""

from __future__ import annotations

import pytest
import tensorflow as tf

from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.serving import export_language_model
from tests.serving.exported import TEXT, make_model


@pytest.fixture(scope="session")
def vocabulary():
    return Vocabulary.build(TEXT, rule="words", unknown=True)


@pytest.fixture(scope="session")
def model(vocabulary):
    return make_model(vocabulary)


@pytest.fixture(scope="session")
def path(model, vocabulary, tmp_path_factory):
    path = tmp_path_factory.mktemp("exports") / "not" / "yet" / "there"
    assert export_language_model(model, vocabulary, path) == path
    assert [p.name for p in path.parent.iterdir()] == ["there"]  # nothing beside it
    return path


@pytest.fixture(scope="session")
def loaded(path):
    return tf.saved_model.load(str(path))
