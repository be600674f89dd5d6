"""Images with labels, and parts of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class LabelledImages(NamedTuple):
    """N images of one size.

    Attributes:
        images: uint8 `[N, H, W, C]`.
        labels: int32 `[N]`, from 0 on.
        names: Of the classes.
    """

    images: np.ndarray
    labels: np.ndarray
    names: tuple[str, ...]

    def part(self, rows: npt.ArrayLike) -> LabelledImages:
        """Returns the images of some rows, in that order."""
        rows = np.asarray(rows)
        return self._replace(images=self.images[rows], labels=self.labels[rows])


def checked_images(
    function: str, images: npt.ArrayLike, labels: npt.ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """Returns images and labels; names `function` in the messages.

    Raises:
        ValueError: If images are no uint8 `[N, H, W, C]`, or there is not one label
            from 0 on for each.
    """
    images, labels = np.asarray(images), np.asarray(labels)
    if images.ndim != 4 or images.dtype != np.uint8 or not len(images):
        raise ValueError(
            f"{function}: images must be uint8 [N, H, W, C], N > 0, found "
            f"{images.dtype} of shape {list(images.shape)}."
        )
    if (
        labels.shape != images.shape[:1]
        or not np.issubdtype(labels.dtype, np.integer)
        or labels.min() < 0
    ):
        raise ValueError(
            f"{function}: labels must be {len(images)} integers from 0 on, found "
            f"{labels.dtype} of shape {list(labels.shape)}."
        )
    return images, labels.astype(np.int32)
