"""Batches of images that are read from their files as they are needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, check_range
from rlm_tf.data.images.published_images import ImageFiles, decoded, middle_square
from rlm_tf.host_tensors import host_tensor

# Shares of an image that a cut has, and ratios of its sides, as is usual for ImageNet.
_AREAS, _RATIOS = (0.08, 1.0), (3 / 4, 4 / 3)
# The side of the middle square, over that of an image to be judged on: 256 of 224.
_MARGIN = 256 / 224
_DRAWS = 5
# How files of the formats that can be read begin.
_BEGINNINGS = (b"\xff\xd8", b"\x89PNG", b"GIF8", b"BM")


class ImageFileBatches:
    """Batches `((images, ids), labels)` of labelled files, too many for the memory.

    Used as `ResumableBatches(ImageFileBatches(...))` (`rlm_tf.training`), and like
    `ImageBatches` for the rest: another order in each epoch, the last batch may be
    smaller, what is drawn of an example depends on (seed, epoch, id) alone.

    To be learnt from, images are cut (a share of 0.08 to 1 of the area, sides as 3:4 to
    4:3, where that fits into the image), mirrored by half, and resized (Szegedy et al.
    2015, arXiv 1409.4842); to be judged on (`in_order`), the middle of a square of 8/7
    of the size is taken.

    Args:
        files: The files; their places are their ids.
        batch_size: B.
        size: Height and width.
        seed: Of order and draws.
        mean: Of each channel over 255, or of all.
        deviation: Likewise.
        with_ids: Whether there are ids; else batches are `(images, labels)`.

    Attributes:
        steps: Batches of an epoch.

    Raises:
        ValueError: If there is no file, or a number is out of range; while reading, an
            InvalidArgumentError that names the file, if it is no image.
    """

    def __init__(
        self,
        files: ImageFiles,
        batch_size: int,
        size: int = 224,
        *,
        seed: int = 0,
        mean: float | Sequence[float] = 0.0,
        deviation: float | Sequence[float] = 1.0,
        with_ids: bool = True,
    ) -> None:
        name = type(self).__name__
        check_integer(name, "batch_size", batch_size, 1)
        check_integer(name, "size", size, 1)
        check_integer(name, "seed", seed, 0)
        for own in np.ravel(deviation):
            check_range(name, 1e-12, math.inf, deviation=float(own))
        if not files.paths or len(files.paths) != len(files.labels):
            raise ValueError(
                f"{name}: `files` must have a label for each path, found "
                f"{len(files.paths)} and {len(files.labels)}."
            )
        self.files = files
        self.labels = np.asarray(files.labels, np.int32)
        self.num_classes = len(files.names)
        self.batch_size = batch_size
        self.size = size
        self.seed = seed
        self.mean, self.deviation = (
            np.asarray(x, np.float32) for x in (mean, deviation)
        )
        self.with_ids = with_ids
        self.steps = -(-len(self.labels) // batch_size)

    def dataset(self, epoch: Any = 0, start_step: Any = 0) -> tf.data.Dataset:
        """Returns the batches of an epoch from a step on, in a random order."""
        seed = tf.stack([tf.constant(self.seed, tf.int64), tf.cast(epoch, tf.int64)])
        number = len(self.labels)
        order = tf.random.experimental.stateless_shuffle(tf.range(number), seed)
        first = tf.cast(start_step, tf.int64) * self.batch_size
        paths, labels = host_tensor(self.files.paths), host_tensor(self.labels)

        def element(number: tf.Tensor) -> Any:
            own = tf.random.experimental.stateless_fold_in(seed, number)
            draws = tf.random.stateless_uniform([_DRAWS], own)
            return self._cut(_read(paths[number]), draws), number, labels[number]

        def batch(images: tf.Tensor, ids: tf.Tensor, labels: tf.Tensor) -> Any:
            x = self._scaled(images)
            return ((x, ids) if self.with_ids else x), labels

        examples = tf.data.Dataset.from_tensor_slices(order).skip(first)
        return self._batched(examples, element).map(batch)

    def in_order(self) -> tf.data.Dataset:
        """Returns batches `(images, labels)` of the middles of all examples."""
        paths, labels = host_tensor(self.files.paths), host_tensor(self.labels)

        def element(number: tf.Tensor) -> Any:
            return self._middle(_read(paths[number])), labels[number]

        examples = tf.data.Dataset.range(len(self.labels))
        return self._batched(examples, element).map(lambda x, y: (self._scaled(x), y))

    def _batched(self, examples: tf.data.Dataset, element: Any) -> tf.data.Dataset:
        read = examples.map(
            element, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
        )
        return read.batch(self.batch_size).prefetch(1)

    def _cut(self, image: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
        """Returns a part of an image, perhaps mirrored, float32 `[S, S, C]`."""
        height, width = tf.unstack(tf.cast(tf.shape(image)[:2], tf.float32))
        area = (_AREAS[0] + draws[0] * (_AREAS[1] - _AREAS[0])) * height * width
        low, high = map(math.log, _RATIOS)
        ratio = tf.exp(low + draws[1] * (high - low))
        rows = tf.clip_by_value(tf.round(tf.sqrt(area / ratio)), 1.0, height)
        columns = tf.clip_by_value(tf.round(tf.sqrt(area * ratio)), 1.0, width)
        top = tf.floor(draws[2] * (height - rows + 1))
        left = tf.floor(draws[3] * (width - columns + 1))
        box = tf.cast(tf.stack([top, left, rows, columns]), tf.int32)
        part = tf.slice(image, [box[0], box[1], 0], [box[2], box[3], -1])
        part = tf.image.resize(part, [self.size, self.size], antialias=True)
        return tf.where(draws[4] < 0.5, part[:, ::-1], part)

    def _middle(self, image: tf.Tensor) -> tf.Tensor:
        side = round(_MARGIN * self.size)
        whole = tf.image.resize(middle_square(image), [side, side], antialias=True)
        first = (side - self.size) // 2
        return whole[first : first + self.size, first : first + self.size]

    def _scaled(self, images: tf.Tensor) -> tf.Tensor:
        # Images that were decoded have forgotten their channels.
        x = tf.ensure_shape(images, [None, self.size, self.size, 3])
        return (x / 255 - self.mean) / self.deviation


def _read(path: tf.Tensor) -> tf.Tensor:
    """Returns an image; an InvalidArgumentError names a file that is none."""
    content = tf.io.read_file(path)
    padded = tf.strings.join([content, "    "])
    known = [tf.strings.substr(padded, 0, len(own)) == own for own in _BEGINNINGS]
    is_image = tf.debugging.Assert(
        tf.reduce_any(known), ["ImageFileBatches: no image:", path]
    )
    with tf.control_dependencies([is_image]):
        return decoded(tf.identity(content))
