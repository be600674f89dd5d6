"""The folder of checkpoints."""

from __future__ import annotations

import errno
import json
import math
import shutil

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.training import CheckpointStore, checkpoint


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


def _folder(path):
    path.unlink()
    path.mkdir()


def _as(content):
    return lambda path: path.write_bytes(content)


_DAMAGE = {
    "cut": _cut,
    "flipped": _flip,
    "missing": lambda path: path.unlink(),
    "folder": _folder,
    "empty": _as(b""),
    "garbage": _as(b"\xff\x00\xfe garbage"),
    "deep": _as(b"[" * 100_000),
    "null": _as(b"null"),
    "number": _as(b"3"),
    "string": _as(b'"state.json"'),
    "list": _as(b'["state.json", "arrays.npz", 1]'),
    "object": _as(b"{}"),
    "numbers": _as(b'{"state.json": 1, "arrays.npz": [2], "format": 1}'),
    "format": _as(b'{"state.json": 1, "arrays.npz": [2], "format": "x"}'),
}


@pytest.mark.parametrize("file", ["state.json", "arrays.npz", "manifest.json"])
@pytest.mark.parametrize("damage", _DAMAGE.values(), ids=_DAMAGE)
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


@pytest.mark.parametrize(
    "content", ["[]", '{"state": {}}', '{"state": 1, "dtypes": 2}']
)
def test_a_state_of_another_shape_is_damage(tmp_path, caplog, content):
    """The manifest agrees with it: somebody has written both."""
    store = CheckpointStore(tmp_path)
    store.save({"epoch": 1}, {})
    newest = store.save({"epoch": 2}, {})
    (newest / "state.json").write_text(content)
    manifest = json.loads((newest / "manifest.json").read_text())
    manifest["state.json"] = checkpoint._describe(newest / "state.json")
    (newest / "manifest.json").write_text(json.dumps(manifest))
    assert store.load_latest().state == {"epoch": 1}
    assert str(newest) in caplog.text


def test_a_file_in_the_place_of_a_checkpoint(tmp_path, caplog):
    store = CheckpointStore(tmp_path)
    store.save({"epoch": 1}, {})
    shutil.rmtree(store.save({"epoch": 2}, {}))
    (tmp_path / "checkpoint-00000002").write_text("")
    (tmp_path / ".partial-00000003").write_text("")
    assert store.load_latest().state == {"epoch": 1}
    for epoch in (3, 4):
        store.save({"epoch": epoch}, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint-00000003",
        "checkpoint-00000004",
    ]


# === Formats ===


def _set_format(path, number):
    manifest = json.loads((path / "manifest.json").read_text())
    manifest.pop("format")
    if number is not None:
        manifest["format"] = number
    (path / "manifest.json").write_text(json.dumps(manifest))


def test_a_checkpoint_without_a_number_is_read(tmp_path, arrays):
    """As it was written before there were numbers."""
    store = CheckpointStore(tmp_path)
    path = store.save({"epoch": 1}, arrays)
    assert store.load_latest().format == checkpoint.FORMAT == 1
    assert store.load_latest().origin == str(path)
    _set_format(path, None)
    loaded = store.load_latest()
    assert loaded.format == 0 and loaded.state == {"epoch": 1}
    assert set(loaded.arrays) == set(arrays)
    assert loaded.origin == f"{path} (of format 0, this version writes 1)"


def test_a_newer_format_is_refused_even_beside_an_older(tmp_path):
    store = CheckpointStore(tmp_path)
    store.save({"epoch": 1}, {})
    path = store.save({"epoch": 2}, {})
    _set_format(path, 7)
    with pytest.raises(
        ValueError, match=r"has format 7, .* reads formats up to 1"
    ) as e:
        store.load_latest()
    assert str(path) in str(e.value) and "\n" not in str(e.value)


# === Full disks ===


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("json.dump", "state.json"),
        ("np.lib.format.write_array", "arrays.npz"),
        ("os.fsync", "state.json"),
    ],
)
def test_a_full_disk_is_named_and_the_others_stay(
    tmp_path, arrays, monkeypatch, where, named
):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    store = CheckpointStore(tmp_path)
    store.save({"epoch": 1}, arrays)
    with monkeypatch.context() as patched:
        patched.setattr(f"rlm_tf.training.checkpoint.{where}", full)
        with pytest.raises(OSError, match=f"No space left on device: .*{named}"):
            store.save({"epoch": 2}, arrays)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-00000001"]
    assert store.load_latest().state == {"epoch": 1}


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
    assert manifest.pop("format") == checkpoint.FORMAT
    assert set(manifest) | {"manifest.json"} == {p.name for p in path.iterdir()}


def test_errors(tmp_path):
    with pytest.raises(ValueError, match="`keep` must be an integer >= 1"):
        CheckpointStore(tmp_path, keep=0)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="must be a folder"):
        CheckpointStore(tmp_path / "file")
