"""The library in a process of its own: what imports bring, and files of models."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import zipfile

import keras
import pytest

import rlm_tf
from tests.compatibility.arrays import FILES

ROOT = pathlib.Path(__file__).parents[1]
_FILE = FILES / "RecurrentLanguageModel.keras"

_IMPORTS = """
import sys
import rlm_tf
assert not {"tensorflow", "keras", "tensorflow_probability"} & {*sys.modules}
assert "models" in dir(rlm_tf) and "load_model" in dir(rlm_tf)
assert not hasattr(rlm_tf, "nothing")
"""

_REGISTERED = """
import importlib, pkgutil
import rlm_tf.models
import keras

def registered():
    names = keras.saving.get_custom_objects()
    return {name for name in names if name.startswith("rlm_tf>")}

early = registered()
for module in pkgutil.walk_packages(rlm_tf.__path__, "rlm_tf."):
    importlib.import_module(module.name)
assert len(early) > 40
assert early == registered(), registered() - early
"""

_LOADS = """
import json
import pathlib
import rlm_tf
assert rlm_tf.layers.GRUCell.__module__ == "rlm_tf.layers.recurrent.gru_cell"
# Of the tests: the model that holds single layers.
import tests.compatibility.shelf
for path in sorted(pathlib.Path("tests/compatibility/files").glob("*.keras")):
    model = rlm_tf.load_model(path)
    name = type(model).__name__
    assert name == path.stem.partition("_")[0] or name == "Shelf"
    assert model.compiled or name == "Shelf"
"""


def _run(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr


def _changed(path: pathlib.Path, member: str, content: bytes) -> None:
    """Writes the file of a model with one other member."""
    with zipfile.ZipFile(_FILE) as archive, zipfile.ZipFile(path, "w") as changed:
        for name in archive.namelist():
            changed.writestr(name, content if name == member else archive.read(name))


# === Other processes ===


def test_the_library_is_imported_without_tensorflow():
    _run(_IMPORTS)


@pytest.mark.slow
@pytest.mark.landing
def test_models_register_every_class():
    _run(_REGISTERED)


@pytest.mark.slow
@pytest.mark.landing
def test_files_need_no_other_import():
    _run(_LOADS)


# === Files ===


def test_without_compiling_there_is_no_optimizer():
    assert rlm_tf.load_model(_FILE).optimizer.iterations.numpy() == 2
    assert not rlm_tf.load_model(str(_FILE), compile=False).compiled


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*mine"):
        rlm_tf.load_model(tmp_path / "mine.keras")
    with pytest.raises(IsADirectoryError, match="is a folder, expected a"):
        rlm_tf.load_model(tmp_path)


@pytest.mark.parametrize("suffix", [".keras", ".h5", ".txt"])
def test_files_that_are_something_else_are_named(tmp_path, suffix):
    path = (tmp_path / "mine").with_suffix(suffix)
    path.write_bytes(b"something")
    with pytest.raises(ValueError, match=rf"mine\{suffix} could not be read as a mod"):
        rlm_tf.load_model(path)


@pytest.mark.parametrize(
    ("member", "content"),
    [
        ("config.json", b"[1]"),
        ("config.json", b'{"class_name": "Unknown", "config": {}}'),
        ("model.weights.h5", b"something"),
    ],
)
def test_damaged_files_are_named(tmp_path, member, content):
    path = tmp_path / "mine.keras"
    _changed(path, member, content)
    with pytest.raises(ValueError, match=r"mine\.keras could not be read as a model"):
        rlm_tf.load_model(path)


def test_what_went_wrong_is_told_before_the_config_of_a_file(tmp_path):
    path = tmp_path / "mine.keras"
    held = rlm_tf.models.TransformerLanguageModel
    described = keras.saving.serialize_keras_object(held(7, 4, 1, num_heads=2))
    described["config"]["num_heads"] = 3
    _changed(path, "config.json", json.dumps(described).encode())
    with pytest.raises(ValueError, match=r"\(ValueError: .*num_heads"):
        rlm_tf.load_model(path)


def test_layers_are_no_models(tmp_path):
    layer = keras.layers.Dense(1)
    layer.build((None, 1))
    keras.saving.save_model(layer, tmp_path / "mine.keras")
    with pytest.raises(ValueError, match="holds a Dense, which is no model"):
        rlm_tf.load_model(tmp_path / "mine.keras")
