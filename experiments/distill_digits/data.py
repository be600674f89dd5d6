"""Which images are trained on, held out and judged on."""

from __future__ import annotations

import os
import pathlib
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from experiments.distill_digits.config import SETS, DigitsConfig, ImageSet
from rlm_tf.data import (
    ImageBatches,
    ImageFileBatches,
    ImageFiles,
    LabelledImages,
    cifar100,
    digits,
    image_folder,
    tiny_imagenet,
)
from rlm_tf.data.text.corpora import DATA_DIR_VARIABLE
from rlm_tf.training import ResumableBatches

Images = LabelledImages | ImageFiles


class Parts(NamedTuple):
    """The parts of a seed.

    Attributes:
        train: Images to learn from.
        valid: For stopping and temperatures.
        test: To be judged on.
        kind: How they are read.
    """

    train: Images
    valid: Images
    test: Images
    kind: ImageSet

    def labels(self, split: str) -> np.ndarray:
        """Returns the labels of a part."""
        part: Images = getattr(self, split)
        return part.labels

    def dataset(self, split: str, batch_size: int) -> tf.data.Dataset:
        """Returns batches (images, labels) of a part, as they are."""
        return self._batches(getattr(self, split), batch_size).in_order()

    def batches(
        self, config: DigitsConfig, seed: int, mixing: str = "", alpha: float = 1.0
    ) -> ResumableBatches:
        """Returns training batches, augmented.

        Raises:
            ValueError: If images that are read from files were to be mixed.
        """
        kind = self.kind
        if kind.size:
            if mixing:
                raise ValueError(
                    f"--teachers: images of files are not mixed ({mixing})."
                )
            options: dict[str, Any] = {}
        else:
            options = {
                "shift": kind.shift,
                "flip": kind.flip,
                "rotation": kind.rotation,
                "mixing": mixing,
                "alpha": alpha,
            }
        own = self._batches(self.train, config.batch_size, seed=seed, **options)
        return ResumableBatches(own)

    def _batches(self, part: Any, batch_size: int, **own: Any) -> Any:
        kind = self.kind
        options = {**own, "mean": kind.mean, "deviation": kind.deviation}
        if kind.size:
            return ImageFileBatches(part, batch_size, kind.size, **options)
        return ImageBatches(part, batch_size, **options)


def drawn(config: DigitsConfig, seed: int) -> Parts:
    """Returns the parts of a seed.

    Raises:
        FileNotFoundError: If the images are not there.
        ValueError: If there are too few.
    """
    data, test = _read(config.data)
    number = len(data.labels)
    order = np.random.default_rng([seed, 31]).permutation(number)
    ends = [config.examples, config.examples + config.held_out]
    if ends[1] > number or (test is None and ends[1] == number):
        raise ValueError(
            f"--examples={config.examples} and --held_out={config.held_out} are more "
            f"than the {number} images of {config.data}."
        )
    train, valid, rest = (data.part(rows) for rows in np.split(order, ends))
    return Parts(train, valid, rest if test is None else test, SETS[config.data])


def _read(name: str) -> tuple[Any, Any]:
    """Returns images to draw from, and those to be judged on, if they are others."""
    if name == "digits":
        return digits(), None
    if name == "cifar100":
        return cifar100("train"), cifar100("test")
    if name == "tiny-imagenet":
        size = SETS[name].shape[0]
        return tiny_imagenet("train").read(size), tiny_imagenet("valid").read(size)
    folder = _data_dir() / name
    return image_folder(folder / "train"), image_folder(folder / "val")


def _data_dir() -> pathlib.Path:
    found = os.environ.get(DATA_DIR_VARIABLE)
    if not found:
        raise FileNotFoundError(f"give --data_dir, or set {DATA_DIR_VARIABLE}.")
    return pathlib.Path(found)
