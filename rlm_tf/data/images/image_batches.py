"""Batches of labelled images, augmented by seed, epoch and example alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, check_option, check_range
from rlm_tf.data.images.augmix import NUM_DRAWS, augmix
from rlm_tf.data.images.labelled_images import LabelledImages, checked_images
from rlm_tf.data.images.moved import moved
from rlm_tf.host_tensors import host_tensor

MIXINGS = ("", "mixup", "cutmix", "augmix")
# What uniform draws are for, besides those of `augmix`.
_PLACE, _PARTNER, _BOX = slice(0, 4), 4, slice(5, 7)
_FURTHER = 7


class _Draws(NamedTuple):
    """What is drawn of each example in an epoch.

    Attributes:
        uniform: `[N, D]`.
        share: `[N]`, what an example keeps of itself; of `augmix` m.
        chains: `[N, 3]`, of `augmix`.
    """

    uniform: tf.Tensor
    share: tf.Tensor
    chains: tf.Tensor


class ImageBatches:
    """Batches `((images, ids), labels)` of labelled images.

    Used as `ResumableBatches(ImageBatches(...))` (`rlm_tf.training`). Examples come in
    another order in each epoch, a function of (seed, epoch), and all of them: the last
    batch may be smaller. What is drawn of an example depends on (seed, epoch, id)
    alone, so that batches of other sizes, or of a resumed run, have the same images.

    Images are float32, `(x / 255 - mean) / deviation`. Where images are mixed, labels
    are probabilities `[B, K]`:

        mixup   share x_i + (1 - share) x_j              (Zhang et al. 2018)
        cutmix  a box of x_i is that of x_j              (Yun et al. 2019)
        augmix  x_i and distortions of it; labels stay   (Hendrycks et al. 2020)

    with the share of Beta(alpha, alpha) and j any example.

    Args:
        data: The images; their places are their ids.
        batch_size: B.
        seed: Of order and draws.
        shift: Pixels that an image is moved at most, up or down and left or right.
        flip: Whether half of the images are mirrored.
        rotation: Degrees that an image is turned at most.
        mixing: "", "mixup", "cutmix" or "augmix".
        alpha: Of the share.
        mean: Of each channel, or of all.
        deviation: Likewise.
        with_ids: Whether there are ids; else batches are `(images, labels)`.

    Attributes:
        steps: Batches of an epoch.

    Raises:
        ValueError: If images and labels do not fit, or a number is out of range.
    """

    def __init__(
        self,
        data: LabelledImages,
        batch_size: int,
        *,
        seed: int = 0,
        shift: int = 0,
        flip: bool = False,
        rotation: float = 0.0,
        mixing: str = "",
        alpha: float = 1.0,
        mean: float | Sequence[float] = 0.0,
        deviation: float | Sequence[float] = 1.0,
        with_ids: bool = True,
    ) -> None:
        name = type(self).__name__
        check_integer(name, "batch_size", batch_size, 1)
        check_integer(name, "seed", seed, 0)
        check_integer(name, "shift", shift, 0)
        check_range(name, 0.0, 360.0, rotation=rotation)
        check_option(name, "mixing", mixing, MIXINGS)
        check_range(name, 1e-6, math.inf, alpha=alpha)
        if np.any(np.asarray(deviation) <= 0):
            raise ValueError(
                f"{name}: `deviation` must be positive, found {deviation}."
            )
        self.images, self.labels = checked_images(name, data.images, data.labels)
        self.num_classes = len(data.names)
        if self.labels.max() >= self.num_classes:
            raise ValueError(
                f"{name}: there are {self.num_classes} names of classes, and a label "
                f"{self.labels.max()}."
            )
        self.batch_size = batch_size
        self.seed = seed
        self.shift = shift
        self.flip = flip
        self.rotation = rotation
        self.mixing = mixing
        self.alpha = alpha
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
        draws = self._draws(seed)
        images, labels = host_tensor(self.images), host_tensor(self.labels)
        first = tf.cast(start_step, tf.int64) * self.batch_size
        ids = tf.data.Dataset.from_tensor_slices(order).skip(first)

        def element(ids: tf.Tensor) -> Any:
            own = _Draws(*(tf.gather(each, ids) for each in draws))
            found = self._augmented(images, ids, own)
            partners = self._partners(own)
            x, share = self._mixed(images, found, partners, own, draws)
            y = tf.gather(labels, ids)
            if share is not None:
                share = share[:, tf.newaxis]
                own_label, other = (
                    tf.one_hot(each, self.num_classes)
                    for each in (y, tf.gather(labels, partners))
                )
                y = share * own_label + (1 - share) * other
            # Operations on images forget their sizes.
            x = tf.ensure_shape(self._scaled(x), [None, *self.images.shape[1:]])
            return ((x, ids) if self.with_ids else x), y

        return ids.batch(self.batch_size).map(
            element, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
        )

    def in_order(self) -> tf.data.Dataset:
        """Returns batches `(images, labels)` of all examples as they are."""
        images, labels = host_tensor(self.images), host_tensor(self.labels)
        rows = tf.data.Dataset.range(len(self.labels)).batch(self.batch_size)
        return rows.map(
            lambda ids: (
                self._scaled(tf.cast(tf.gather(images, ids), tf.float32)),
                tf.gather(labels, ids),
            )
        )

    # === Parts ===

    def _draws(self, seed: tf.Tensor) -> _Draws:
        number = len(self.labels)
        size = _FURTHER + (NUM_DRAWS if self.mixing == "augmix" else 0)
        seeds = tf.random.split(seed, 3)
        gammas = [
            tf.random.stateless_gamma([number, columns], own, self.alpha)
            for columns, own in ((2, seeds[1]), (3, seeds[2]))
        ]
        # Of an alpha that is tiny both may be 0.
        share, chains = (
            (each + 1e-30) / tf.reduce_sum(each + 1e-30, axis=1, keepdims=True)
            for each in gammas
        )
        uniform = tf.random.stateless_uniform([number, size], seeds[0])
        return _Draws(uniform, share[:, 0], chains)

    def _augmented(self, images: tf.Tensor, ids: tf.Tensor, own: _Draws) -> tf.Tensor:
        """Returns images float32 `[B, H, W, C]`, moved, mirrored and turned."""
        x = tf.cast(tf.gather(images, ids), tf.float32)
        if not (self.shift or self.flip or self.rotation):
            return x
        place = own.uniform[:, _PLACE]
        down, right = (
            tf.floor(place[:, axis] * (2 * self.shift + 1)) - self.shift
            for axis in (0, 1)
        )
        flip = place[:, 2] < 0.5 if self.flip else None
        angle = (2 * place[:, 3] - 1) * (self.rotation * math.pi / 180)
        return moved(
            x, down=down, right=right, flip=flip, angle=angle, exact=not self.rotation
        )

    def _partners(self, own: _Draws) -> tf.Tensor:
        """Returns the ids of the examples that each is mixed with."""
        number = len(self.labels)
        drawn = tf.cast(own.uniform[:, _PARTNER] * number, tf.int32)
        return tf.minimum(drawn, number - 1)

    def _mixed(
        self,
        images: tf.Tensor,
        x: tf.Tensor,
        partners: tf.Tensor,
        own: _Draws,
        draws: _Draws,
    ) -> tuple[tf.Tensor, tf.Tensor | None]:
        """Returns mixed images, and what each has of its own label."""
        if not self.mixing:
            return x, None
        if self.mixing == "augmix":
            weights = tf.concat([own.chains, own.share[:, tf.newaxis]], axis=1)
            return augmix(x, own.uniform[:, _FURTHER:], weights), None
        theirs = _Draws(*(tf.gather(each, partners) for each in draws))
        other = self._augmented(images, partners, theirs)
        if self.mixing == "mixup":
            share = own.share[:, tf.newaxis, tf.newaxis, tf.newaxis]
            return share * x + (1 - share) * other, own.share
        inside = _box(tf.shape(x), own.share, own.uniform[:, _BOX])
        area = tf.reduce_mean(tf.cast(inside, tf.float32), axis=[1, 2])
        return tf.where(inside[..., tf.newaxis], other, x), 1 - area

    def _scaled(self, x: tf.Tensor) -> tf.Tensor:
        return (x / 255 - self.mean) / self.deviation


def _box(shape: tf.Tensor, share: tf.Tensor, centre: tf.Tensor) -> tf.Tensor:
    """Returns where a box of 1 - share of the area lies, bool `[B, H, W]`."""
    inside = []
    for axis in (0, 1):
        size = tf.cast(shape[1 + axis], tf.float32)
        half = tf.sqrt(1 - share)[:, tf.newaxis] * size / 2
        middle = tf.floor(centre[:, axis, tf.newaxis] * size)
        places = tf.range(size)[tf.newaxis]
        low = tf.floor(tf.maximum(middle - half, 0))
        high = tf.floor(tf.minimum(middle + half, size))
        inside.append((places >= low) & (places < high))
    return inside[0][:, :, tf.newaxis] & inside[1][:, tf.newaxis, :]
