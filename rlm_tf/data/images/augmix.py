"""AugMix (Hendrycks et al. 2020): an image mixed with chains of simple distortions."""

from __future__ import annotations

import math

import tensorflow as tf

from rlm_tf.data.images.moved import moved

# Of Hendrycks et al.: severity, and the most that a distortion does.
_SEVERITY = 3
_MOST_ANGLE, _MOST_SHEAR, _MOST_SHIFT = 30.0, 0.3, 1 / 3
_OPERATIONS = 9
_CHAINS, _DEPTH = 3, 3
# Numbers that one image is mixed by: of every distortion which, how much and its sign;
# of every chain its length.
NUM_DRAWS = _CHAINS * (3 * _DEPTH + 1)


def augmix(images: tf.Tensor, draws: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Returns `m x + (1 - m) sum_k w_k chain_k(x)` with three chains of 1 to 3 steps.

    Distortions are autocontrast, equalising, posterising, solarising, turning, shearing
    and shifting.

    Args:
        images: x, float32 `[B, H, W, C]`, 0 to 255.
        draws: `[B, NUM_DRAWS]`, uniform in [0, 1).
        weights: `[B, 4]`: of the chains, which sum to 1, and m.
    """
    shape = [-1, _CHAINS, 3 * _DEPTH + 1]
    draws = tf.reshape(draws, shape)
    mixed = tf.zeros_like(images)
    for chain in range(_CHAINS):
        distorted = images
        length = 1 + tf.cast(draws[:, chain, -1] * _DEPTH, tf.int32)
        for step in range(_DEPTH):
            own = draws[:, chain, 3 * step : 3 * step + 3]
            goes_on = (step < length)[:, tf.newaxis, tf.newaxis, tf.newaxis]
            distorted = tf.where(goes_on, _distorted(distorted, own), distorted)
        mixed += _each(weights[:, chain]) * distorted
    share = _each(weights[:, _CHAINS])
    return share * images + (1 - share) * mixed


def _distorted(images: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
    """Returns each image distorted in the way that its three draws say."""
    operation = tf.cast(draws[:, 0] * _OPERATIONS, tf.int32)
    level = (0.1 + draws[:, 1] * (_SEVERITY - 0.1)) / 10
    level_and_sign = tf.where(draws[:, 2] < 0.5, -level, level)

    def of(index: int) -> tf.Tensor:
        return tf.where(operation == index, level_and_sign, 0.0)

    height, width = (tf.cast(n, tf.float32) for n in tf.unstack(tf.shape(images)[1:3]))
    # One transformation for all that move; those of other images stay in place.
    found = moved(
        images,
        angle=of(0) * (_MOST_ANGLE * math.pi / 180),
        shear_x=of(1) * _MOST_SHEAR,
        shear_y=of(2) * _MOST_SHEAR,
        right=tf.round(of(3) * _MOST_SHIFT * width),
        down=tf.round(of(4) * _MOST_SHIFT * height),
    )
    for index, changed in (
        (5, autocontrast(images)),
        (6, equalised(images)),
        (7, posterised(images, level)),
        (8, solarised(images, level)),
    ):
        found = tf.where(_each(operation == index), changed, found)
    return found


def autocontrast(images: tf.Tensor) -> tf.Tensor:
    """Returns images of which each channel reaches from 0 to 255; flat ones stay."""
    low, high = (
        reduce(images, axis=[1, 2], keepdims=True)
        for reduce in (tf.reduce_min, tf.reduce_max)
    )
    spread = tf.where(high > low, high - low, 1.0)
    return tf.where(high > low, (images - low) * (255 / spread), images)


def equalised(images: tf.Tensor) -> tf.Tensor:
    """Returns images of which each channel has every brightness about as often.

    As the Python Imaging Library does it, with a table of 256 entries a channel.
    """
    shape = tf.shape(images)
    rows = tf.transpose(images, [0, 3, 1, 2])
    rows = tf.reshape(rows, [-1, shape[1] * shape[2]])
    values = tf.cast(tf.clip_by_value(tf.round(rows), 0, 255), tf.int32)
    counts = tf.math.bincount(values, minlength=256, maxlength=256, axis=-1)
    highest = tf.reduce_max(values, axis=1, keepdims=True)
    last = tf.gather(counts, highest, batch_dims=1)
    step = (tf.reduce_sum(counts, axis=1, keepdims=True) - last) // 255
    table = tf.cumsum(counts, axis=1, exclusive=True) + step // 2
    table = tf.clip_by_value(table // tf.maximum(step, 1), 0, 255)
    found = tf.cast(tf.gather(table, values, batch_dims=1), tf.float32)
    found = tf.where(step > 0, found, rows)
    found = tf.reshape(found, tf.gather(shape, [0, 3, 1, 2]))
    return tf.transpose(found, [0, 2, 3, 1])


def posterised(images: tf.Tensor, level: tf.Tensor) -> tf.Tensor:
    """Returns images of 4 bits a channel, less up to four by `level` `[B]`."""
    bits = 4 - tf.floor(4 * level)
    size = _each(2.0 ** (8 - bits))
    return tf.floor(images / size) * size


def solarised(images: tf.Tensor, level: tf.Tensor) -> tf.Tensor:
    """Returns images in which what is brighter than 256 (1 - `level`) is inverted."""
    return tf.where(images < _each(256 * (1 - level)), images, 255 - images)


def _each(values: tf.Tensor) -> tf.Tensor:
    """Returns `[B, 1, 1, 1]`."""
    return values[:, tf.newaxis, tf.newaxis, tf.newaxis]
