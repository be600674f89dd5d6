"""Readers of labelled images, on files made here in the published layouts."""

from __future__ import annotations

import io
import tarfile

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import cifar100, digits, image_folder, tiny_imagenet
from rlm_tf.data.images import published_images


def test_digits_are_whole():
    found = digits()
    assert found.images.shape == (1797, 8, 8, 1) and found.images.dtype == np.uint8
    assert found.names == tuple("0123456789")
    assert len(np.unique(found.images)) == 17
    part = found.part([3, 1])
    np.testing.assert_array_equal(part.labels, found.labels[[3, 1]])
    np.testing.assert_array_equal(part.images[0], found.images[3])


@pytest.fixture(name="cifar")
def _cifar(monkeypatch):
    """Seven training records; bytes, images and labels."""
    monkeypatch.setattr(published_images, "_CIFAR_COUNTS", {"train": 7, "test": 2})
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, [7, 32, 32, 3], np.uint8)
    fine = rng.integers(0, 100, 7).astype(np.uint8)
    rows = [
        np.concatenate([[label // 5, label], image.transpose(2, 0, 1).ravel()])
        for image, label in zip(images, fine, strict=True)
    ]
    content = np.concatenate(rows).astype(np.uint8).tobytes()
    names = [f"class{number}" for number in range(100)]
    return content, images, fine, names


@pytest.mark.parametrize("packed", [False, True])
def test_cifar_records(cifar, packed, tmp_path):
    content, images, fine, names = cifar
    files = {
        "train.bin": content,
        "fine_label_names.txt": ("\n".join(names) + "\n").encode(),
    }
    folder = tmp_path / "cifar100"
    folder.mkdir()
    if packed:
        with tarfile.open(folder / "cifar-100-binary.tar.gz", "w:gz") as tar:
            for name, own in files.items():
                member = tarfile.TarInfo(f"cifar-100-binary/{name}")
                member.size = len(own)
                tar.addfile(member, io.BytesIO(own))
    else:
        for name, own in files.items():
            (folder / name).write_bytes(own)
    found = cifar100("train", tmp_path)
    np.testing.assert_array_equal(found.images, images)
    np.testing.assert_array_equal(found.labels, fine)
    assert found.names == tuple(names)
    if not packed:
        (folder / "train.bin").write_bytes(content[:-1])
        with pytest.raises(ValueError, match=r"must have 7 records of 3074 bytes"):
            cifar100("train", tmp_path)


def _write(path, colour, size=64):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = np.full([size, size, 3], colour, np.uint8)
    path.write_bytes(tf.io.encode_png(image).numpy())


def test_tiny_imagenet(tmp_path, monkeypatch):
    monkeypatch.setattr(published_images, "_TINY_COUNTS", {"train": 4, "valid": 3})
    folder = tmp_path / "tiny-imagenet-200"
    for number, own in enumerate(("n02", "n01")):
        for index in range(2):
            _write(
                folder / "train" / own / "images" / f"{own}_{index}.JPEG",
                40 * number + 10 * index,
            )
    (folder / "wnids.txt").write_text("n02\nn01\n")
    lines = ["v0.JPEG\tn02\t0\t0\t1\t1", "v1.JPEG\tn01\t0\t0\t1\t1"]
    (folder / "val").mkdir()
    (folder / "val" / "val_annotations.txt").write_text("\n".join(lines))
    found = tiny_imagenet("train", tmp_path)
    assert found.names == ("n01", "n02")
    np.testing.assert_array_equal(found.labels, [0, 0, 1, 1])
    images = found.read(64)
    np.testing.assert_array_equal(images.images[:, 0, 0, 0], [40, 50, 0, 10])
    with pytest.raises(ValueError, match=r"valid must have 3 images, found 2"):
        tiny_imagenet("valid", tmp_path)


def test_folders_of_classes(tmp_path):
    for own, colour in (("cat", 10), ("ant", 20)):
        _write(tmp_path / "train" / own / "deep" / "x.png", colour, size=8)
    image = np.zeros([6, 10, 3], np.uint8)
    image[:, 2:8] = 200
    wide = tmp_path / "train" / "ant" / "y.PNG"
    wide.write_bytes(tf.io.encode_png(image).numpy())
    (tmp_path / "train" / "ant" / "notes.txt").write_text("no image")
    found = image_folder(tmp_path / "train")
    assert found.names == ("ant", "cat") and list(found.labels) == [0, 0, 1]
    read = found.read(4)
    # The middle square alone.
    values = {int(value) for value in np.unique(read.images)}
    assert read.images.shape == (3, 4, 4, 3) and values == {10, 20, 200}


def test_mistakes(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"cifar100: there is no cifar-100"):
        cifar100("train", tmp_path)
    with pytest.raises(ValueError, match=r"`split` must be"):
        cifar100("valid", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is no wnids.txt"):
        tiny_imagenet("train", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"has no folders with images"):
        image_folder(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.png").write_text("no image")
    with pytest.raises(ValueError, match=r"x\.png is no image"):
        image_folder(tmp_path).read(4)
    monkeypatch.delenv("RLM_DATA_DIR", raising=False)
    with pytest.raises(FileNotFoundError, match=r"set RLM_DATA_DIR"):
        cifar100("train")
