"""Where SavedModels are written, what stays beside them, and what is in the way."""

from __future__ import annotations

import errno
import fcntl
import os
import pathlib
import time

import pytest
import tensorflow as tf

from rlm_tf.serving import check_export_path, served_name
from rlm_tf.serving import saved_model as saved_model_module
from rlm_tf.serving.saved_model import write_saved_model


class Doubler(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def double(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": 2.0 * x}


def write(path, overwrite=False, check=lambda folder: None):
    module = Doubler()
    requests = {"double": {"x": tf.constant([1.0])}}
    signatures = {"double": module.double}
    return write_saved_model(module, signatures, path, check, requests, overwrite)


def answer(path):
    loaded = tf.saved_model.load(str(path))
    return loaded.signatures["double"](x=tf.constant([2.0]))["y"].numpy().tolist()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# === Links ===


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_kept_and_what_it_points_to_is_written(tmp_path, there):
    target, link = tmp_path / "disk" / "v1", tmp_path / "current"
    if there:
        write(target)
        written = (target / "saved_model.pb").stat().st_mtime_ns
    link.symlink_to(pathlib.Path("disk", "v1"))
    if there:
        with pytest.raises(FileExistsError, match="current already holds a SavedModel"):
            write(link)
    assert write(link, overwrite=there) == link
    assert link.is_symlink() and not target.is_symlink()
    assert not there or (target / "saved_model.pb").stat().st_mtime_ns > written
    assert answer(link) == [4.0]
    assert names(tmp_path) == ["current", "disk"]
    assert names(tmp_path / "disk") == ["v1"]


def test_links_to_other_things_and_in_a_circle(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "text").touch()
    (tmp_path / "link").symlink_to("thesis")
    with pytest.raises(FileExistsError, match="not a SavedModel"):
        check_export_path(tmp_path / "link", overwrite=True)
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(FileExistsError, match="link that leads to itself"):
        check_export_path(tmp_path / "a", overwrite=True)


# === Names ===


@pytest.mark.parametrize("place", [".", "..", "inner/..", "", "../here"])
def test_the_current_folder_is_refused(tmp_path, monkeypatch, place):
    here = tmp_path / "here"
    (here / "inner").mkdir(parents=True)
    monkeypatch.chdir(here)
    with pytest.raises(FileExistsError, match="the folder that this process runs in"):
        check_export_path(place, overwrite=True)
    check_export_path("new")


@pytest.mark.parametrize("name", ["[a]", "a*", "a?", "a\\b", "x[1]/y"])
def test_names_that_tensorflow_takes_for_patterns(tmp_path, name):
    with pytest.raises(ValueError, match=r"TensorFlow takes .* in a path for a patt"):
        check_export_path(tmp_path / name)
    check_export_path(tmp_path / "{a} (b) #c]")


def test_a_file_above_the_path(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="file is a file, so that no folder can"):
        check_export_path(tmp_path / "file" / "deep" / "x")


def test_name_of_a_version_is_its_parents(tmp_path):
    assert served_name("saved_models/mine/1") == "mine"
    assert served_name("saved_models/mine") == "mine"
    assert served_name("saved_models/mine/v1") == "v1"
    assert served_name("/1") == "1"


# === What killed exports leave ===


def left_over(path, *inside, locked=True):
    folder = path.with_name(f".{path.name}.ab_defg9")
    folder.mkdir()
    for name in inside:
        (folder / name).mkdir()
    if locked:
        (folder / "lock").touch()
    return folder


def test_folders_of_killed_exports_are_removed(tmp_path):
    path = tmp_path / "x"
    killed = left_over(path, "new")
    write(path)
    assert names(tmp_path) == ["x"]
    # The one that was replaced is kept while there is nothing in its place.
    path.rename(tmp_path / "away")
    killed = left_over(path, "new", "old")
    with pytest.raises(ZeroDivisionError):
        write(path, check=lambda folder: 1 / 0)
    assert killed.exists()
    write(path)
    assert not killed.exists()


def test_folders_of_others_are_left_alone(tmp_path):
    path = tmp_path / "x"
    live = left_over(path, "new")
    strange = tmp_path / ".x.abcdefgh"
    (strange / "thesis").mkdir(parents=True)
    longer = left_over(tmp_path / "x.y", "new")
    with (live / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        write(path)
        assert live.exists() and strange.exists() and longer.exists()
    write(path, overwrite=True)
    assert not live.exists() and strange.exists() and longer.exists()


def test_an_export_under_way_holds_its_lock(tmp_path):
    path = tmp_path / "x"

    def check(written):
        (folder,) = [p for p in tmp_path.iterdir() if p.name.startswith(".x.")]
        write(path)
        assert folder.exists()

    with pytest.raises(FileExistsError, match="already holds"):
        write(path, check=check)
    assert names(tmp_path) == ["x"] and answer(path) == [4.0]


def test_old_folders_without_a_lock_are_left_over(tmp_path):
    path = tmp_path / "x"
    folder = left_over(path, "new", locked=False)
    write(path)
    assert folder.exists()
    os.utime(folder, (time.time() - 2e5,) * 2)
    write(path, overwrite=True)
    assert not folder.exists()


# === Extras ===


def test_own_files_in_extras_survive_an_overwrite(tmp_path):
    path = write(tmp_path / "x")
    extras = path / "assets.extra"
    default = (extras / "tf_serving_warmup_requests").read_bytes()
    (extras / "notes.txt").write_text("mine")
    (extras / "more").mkdir()
    (extras / "more" / "deep.txt").write_text("mine, too")
    (extras / "gone").symlink_to("nowhere")
    write(path, overwrite=True)
    assert (extras / "notes.txt").read_text() == "mine"
    assert (extras / "more" / "deep.txt").read_text() == "mine, too"
    assert (extras / "gone").is_symlink()
    assert (extras / "tf_serving_warmup_requests").read_bytes() == default

    for own in (b"", b"no record", default[:-1]):
        (extras / "tf_serving_warmup_requests").write_bytes(own)
        write(path, overwrite=True)
        kept = (extras / "tf_serving_warmup_requests").read_bytes()
        assert kept == own


# === Full disks ===


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)),
        tf.errors.ResourceExhaustedError(None, None, "a/b; No space left on device"),
    ],
)
def test_a_full_disk_is_named(tmp_path, monkeypatch, error):
    def save(*arguments, **options):
        raise error

    monkeypatch.setattr(saved_model_module.tf.saved_model, "save", save)
    with pytest.raises(OSError, match="the SavedModel was not written") as caught:
        write(tmp_path / "x")
    assert caught.value.filename == str(tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_other_errors_pass(tmp_path):
    def check(folder):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating")

    with pytest.raises(tf.errors.ResourceExhaustedError, match="OOM"):
        write(tmp_path / "x", check=check)
