"""The folder of checkpoints."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.training import CheckpointStore


@pytest.fixture
def arrays(rng):
    return {
        "a/weights": rng.normal(size=(3, 2)),
        "a/empty": np.zeros([0, 4], np.float32),
        "scalar": np.asarray(np.int64(2**40)),
        "seed": np.array([2**32 - 1, 3], np.uint32),
        "half": tf.constant([[1.5, -0.1]], tf.bfloat16).numpy(),
        "flags": np.array([True, False]),
    }


def test_round_trip_keeps_dtypes_and_bits(tmp_path, arrays):
    store = CheckpointStore(tmp_path / "new" / "folder")
    assert store.load_latest() is None
    state = {"epoch": 3, "value": 0.1 + 0.2, "best": math.inf, "rows": [None, "x"]}
    path = store.save(state, arrays)
    loaded = store.load_latest()
    assert loaded.path == path
    assert loaded.state == state
    assert set(loaded.arrays) == set(arrays)
    for name, array in arrays.items():
        assert loaded.arrays[name].dtype == array.dtype
        assert loaded.arrays[name].shape == array.shape
        assert loaded.arrays[name].tobytes() == array.tobytes()


def test_keeps_the_newest(tmp_path):
    store = CheckpointStore(tmp_path, keep=2)
    for epoch in range(4):
        store.save({"epoch": epoch}, {})
    assert [p.name for p in store.paths()] == [
        "checkpoint-00000003",
        "checkpoint-00000004",
    ]
    assert CheckpointStore(tmp_path).load_latest().state == {"epoch": 3}
    store.clear()
    assert store.paths() == []


def _cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def _flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("file", ["state.json", "arrays.npz", "manifest.json"])
@pytest.mark.parametrize("damage", [_cut, _flip, lambda path: path.unlink()])
def test_damage_is_detected_and_the_one_before_used(
    tmp_path, arrays, caplog, file, damage
):
    store = CheckpointStore(tmp_path)
    store.save({"epoch": 1}, arrays)
    newest = store.save({"epoch": 2}, arrays)
    damage(newest / file)
    assert store.load_latest().state == {"epoch": 1}
    assert str(newest) in caplog.text
    assert "is damaged" in caplog.text
    # The number of a damaged one is not used again.
    assert store.save({"epoch": 3}, arrays).name == "checkpoint-00000003"


def test_all_damaged(tmp_path, caplog):
    store = CheckpointStore(tmp_path)
    _cut(store.save({}, {}) / "state.json")
    assert store.load_latest() is None
    assert "state.json should have" in caplog.text


def test_what_a_kill_leaves_is_ignored_and_removed(tmp_path):
    store = CheckpointStore(tmp_path)
    partial = tmp_path / ".partial-00000001"
    partial.mkdir()
    (partial / "state.json").write_text("{")
    assert store.load_latest() is None
    store.save({"epoch": 1}, {})
    assert not partial.exists()


def test_pickles_are_refused(tmp_path):
    store = CheckpointStore(tmp_path)
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        store.save({}, {"a": np.array([object()])})
    assert store.load_latest() is None


def test_manifest_describes_every_other_file(tmp_path, arrays):
    path = CheckpointStore(tmp_path).save({}, arrays)
    manifest = json.loads((path / "manifest.json").read_text())
    assert set(manifest) | {"manifest.json"} == {p.name for p in path.iterdir()}


def test_errors(tmp_path):
    with pytest.raises(ValueError, match="`keep` must be an integer >= 1"):
        CheckpointStore(tmp_path, keep=0)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="must be a folder"):
        CheckpointStore(tmp_path / "file")
