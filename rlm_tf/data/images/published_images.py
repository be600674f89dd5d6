"""Readers of published sets of labelled images, from their standard files."""

from __future__ import annotations

import os
import pathlib
import tarfile
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_option
from rlm_tf.data.images.labelled_images import LabelledImages
from rlm_tf.data.text.corpora import DATA_DIR_VARIABLE

Path = str | os.PathLike[str]

# Means and deviations of training images by channel, over 255.
CIFAR100_MEAN = (0.5071, 0.4867, 0.4408)
CIFAR100_DEVIATION = (0.2675, 0.2565, 0.2761)

_CIFAR_ARCHIVE = "cifar-100-binary.tar.gz"
_CIFAR_COUNTS = {"train": 50_000, "test": 10_000}
# Of a record: two labels, and three channels of 32 x 32, each row by row.
_CIFAR_RECORD = 2 + 3 * 32 * 32
_CIFAR_SOURCE = "https://www.cs.toronto.edu/~kriz/cifar.html"
_TINY_COUNTS = {"train": 100_000, "valid": 10_000}
_TINY_SOURCE = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"
_SUFFIXES = {".jpeg", ".jpg", ".png", ".bmp", ".gif"}


class ImageFiles(NamedTuple):
    """Files of labelled images, of any sizes.

    Attributes:
        paths: Of N files.
        labels: int32 `[N]`, from 0 on.
        names: Of the classes.
    """

    paths: tuple[str, ...]
    labels: np.ndarray
    names: tuple[str, ...]

    def part(self, rows: npt.ArrayLike) -> ImageFiles:
        """Returns the files of some rows, in that order."""
        rows = np.asarray(rows)
        paths = tuple(self.paths[row] for row in rows)
        return self._replace(paths=paths, labels=self.labels[rows])

    def read(self, size: int) -> LabelledImages:
        """Returns all images in memory, resized to `size` x `size`, of three channels.

        Of images of another shape the middle square is taken.

        Raises:
            ValueError: If a file is none that can be decoded; names it.
        """
        images = np.zeros([len(self.paths), size, size, 3], np.uint8)
        for row, path in enumerate(self.paths):
            try:
                image = read_image(path)
            except tf.errors.InvalidArgumentError as error:
                raise ValueError(f"ImageFiles: {path} is no image.") from error
            if image.shape[:2] != (size, size):
                image = tf.image.resize(middle_square(image), [size, size])
                image = tf.cast(tf.round(image), tf.uint8)
            images[row] = image.numpy()
        return LabelledImages(images, self.labels, self.names)


def read_image(path: Any) -> tf.Tensor:
    """Returns the image of a file, uint8 `[H, W, 3]`."""
    return decoded(tf.io.read_file(path))


def decoded(content: tf.Tensor) -> tf.Tensor:
    """Returns the image of a file's content, uint8 `[H, W, 3]`."""
    return tf.image.decode_image(content, 3, expand_animations=False)


def middle_square(image: tf.Tensor) -> tf.Tensor:
    """Returns the largest square in the middle of `[H, W, C]`."""
    height, width = tf.unstack(tf.shape(image)[:2])
    side = tf.minimum(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return image[top : top + side, left : left + side]


def digits() -> LabelledImages:
    """Returns the 1,797 handwritten digits that scikit-learn has, 8 x 8 x 1."""
    from sklearn.datasets import load_digits

    found = load_digits()
    # Of 17 grey levels.
    images = np.round(found.images * (255 / 16)).astype(np.uint8)
    names = tuple(str(name) for name in found.target_names)
    return LabelledImages(images[..., np.newaxis], found.target.astype(np.int32), names)


def cifar100(split: str, data_dir: Path | None = None) -> LabelledImages:
    """Returns a split of CIFAR-100, by its fine labels, from the binary version.

    Args:
        split: train or test.
        data_dir: Folder with the archive, as it is published or unpacked, or with a
            folder `cifar100` of it; None: the environment variable `RLM_DATA_DIR`.

    Raises:
        FileNotFoundError: If it is not there.
        ValueError: If the split is another, or a file is damaged.
    """
    name = "cifar100"
    check_option(name, "split", split, tuple(_CIFAR_COUNTS))
    folders = _folders(name, data_dir, ("", "cifar100"), _CIFAR_SOURCE)
    content, names = _cifar_files(folders, split)
    number = _CIFAR_COUNTS[split]
    if len(content) != number * _CIFAR_RECORD:
        raise ValueError(
            f"{name}: {split}.bin must have {number} records of {_CIFAR_RECORD} bytes, "
            f"found {len(content)} bytes."
        )
    records = np.frombuffer(content, np.uint8).reshape(number, _CIFAR_RECORD)
    images = records[:, 2:].reshape(number, 3, 32, 32).transpose(0, 2, 3, 1)
    return LabelledImages(
        np.ascontiguousarray(images), records[:, 1].astype(np.int32), names
    )


def _cifar_files(
    folders: Sequence[pathlib.Path], split: str
) -> tuple[bytes, tuple[str, ...]]:
    """Returns the bytes of a split, and the names of the classes."""
    files = (f"{split}.bin", "fine_label_names.txt")
    for folder in folders:
        for place in (folder, folder / "cifar-100-binary"):
            if all((place / file).exists() for file in files):
                content, text = ((place / file).read_bytes() for file in files)
                return content, tuple(text.decode().split())
        archive = folder / _CIFAR_ARCHIVE
        if archive.exists():
            with tarfile.open(archive) as tar:
                parts = []
                for file in files:
                    member = tar.extractfile(f"cifar-100-binary/{file}")
                    assert member is not None
                    parts.append(member.read())
            return parts[0], tuple(parts[1].decode().split())
    raise FileNotFoundError(
        f"cifar100: there is no {_CIFAR_ARCHIVE}, nor {files[0]}, in "
        f"{', '.join(map(str, folders))}; get it from {_CIFAR_SOURCE}."
    )


def tiny_imagenet(split: str, data_dir: Path | None = None) -> ImageFiles:
    """Returns the files of a split of Tiny-ImageNet, 64 x 64, of 200 classes.

    Args:
        split: train or valid; the labels of the test split were never published.
        data_dir: Folder with `tiny-imagenet-200`; None: the environment variable
            `RLM_DATA_DIR`.

    Raises:
        FileNotFoundError: If it is not there.
        ValueError: If the split is another, or there are more or fewer files.
    """
    name = "tiny_imagenet"
    check_option(name, "split", split, tuple(_TINY_COUNTS))
    places = _folders(name, data_dir, ("tiny-imagenet-200",), _TINY_SOURCE)
    folder = next((each for each in places if (each / "wnids.txt").exists()), None)
    if folder is None:
        raise FileNotFoundError(
            f"{name}: there is no wnids.txt in {', '.join(map(str, places))}; get it "
            f"from {_TINY_SOURCE}."
        )
    names = tuple(sorted((folder / "wnids.txt").read_text().split()))
    found: list[tuple[pathlib.Path, str]] = []
    if split == "train":
        for own in names:
            images = sorted((folder / "train" / own / "images").glob("*.JPEG"))
            found += [(path, own) for path in images]
    else:
        lines = (folder / "val" / "val_annotations.txt").read_text().splitlines()
        rows = [line.split("\t")[:2] for line in lines]
        found = [(folder / "val" / "images" / file, own) for file, own in rows]
    if len(found) != _TINY_COUNTS[split]:
        raise ValueError(
            f"{name}: {split} must have {_TINY_COUNTS[split]} images, found "
            f"{len(found)} in {folder}."
        )
    return _files(found, names)


def image_folder(folder: Path) -> ImageFiles:
    """Returns the files of a folder that has a folder for each class, as ImageNet's.

    Args:
        folder: Its folders' names, sorted, are the classes.

    Raises:
        FileNotFoundError: If there is no image in a folder in it.
    """
    folder = pathlib.Path(folder)
    classes = sorted(each for each in folder.glob("*") if each.is_dir())
    found = [
        (path, own.name)
        for own in classes
        for path in sorted(own.rglob("*"))
        if path.suffix.lower() in _SUFFIXES
    ]
    if not found:
        raise FileNotFoundError(
            f"image_folder: {folder} has no folders with images "
            f"({', '.join(sorted(_SUFFIXES))})."
        )
    return _files(found, tuple(own.name for own in classes))


def _files(
    found: Sequence[tuple[pathlib.Path, str]], names: tuple[str, ...]
) -> ImageFiles:
    numbers = {name: number for number, name in enumerate(names)}
    labels = np.array([numbers[own] for _, own in found], np.int32)
    return ImageFiles(tuple(str(path) for path, _ in found), labels, names)


def _folders(
    caller: str, data_dir: Path | None, parts: Sequence[str], source: str
) -> list[pathlib.Path]:
    folder = data_dir or os.environ.get(DATA_DIR_VARIABLE)
    if folder is None:
        raise FileNotFoundError(
            f"{caller}: give `data_dir` or set {DATA_DIR_VARIABLE}; get it from "
            f"{source}."
        )
    return [pathlib.Path(folder) / part for part in parts]
