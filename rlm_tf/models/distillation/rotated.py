"""Batches of images with their rotations beside, and what networks give of them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_ROTATIONS = 3


def with_rotations(name: str, x: Any) -> tf.Tensor:
    """Returns images `[B, H, H, C]` and, behind them, those turned by 90, 180, 270.

    Returns:
        `[4 B, H, H, C]`.

    Raises:
        ValueError: If x is no batch of square images.
    """
    shape = getattr(x, "shape", None)
    if shape is None or len(shape) != 4 or shape[1] != shape[2]:
        found = type(x).__name__ if shape is None else f"shape {list(shape)}"
        raise ValueError(
            f"{name}: what is rotated must be square images [B, H, H, C], found "
            f"{found}."
        )
    x = tf.convert_to_tensor(x)
    turned = [tf.image.rot90(x, turns) for turns in range(1, 1 + _ROTATIONS)]
    return tf.concat([x, *turned], axis=0)


def images_and_views(found: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns what a network gives of images `[B, ...]`, and of views `[B, R, ...]`."""
    parts = tf.split(found, 1 + _ROTATIONS)
    return parts[0], tf.stack(parts[1:], axis=1)


def images_apart(
    found: dict[str, tf.Tensor],
) -> tuple[dict[str, tf.Tensor], dict[str, tf.Tensor]]:
    """Returns what is of images, and what is of their rotations."""
    parts = {path: images_and_views(given) for path, given in found.items()}
    return (
        {path: images for path, (images, _) in parts.items()},
        {path: views for path, (_, views) in parts.items()},
    )
