"""Which digits are trained on, held out and judged on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlm_tf.data import LabelledImages, digits

SHAPE, CLASSES = (8, 8, 1), 10


class Digits(NamedTuple):
    """The parts of a seed.

    Attributes:
        train: Images to learn from.
        valid: For stopping and temperatures.
        test: All others.
    """

    train: LabelledImages
    valid: LabelledImages
    test: LabelledImages

    def arrays(self, split: str) -> tuple[np.ndarray, np.ndarray]:
        """Returns images in [0, 1], and labels."""
        part: LabelledImages = getattr(self, split)
        return part.images.astype(np.float32) / 255, part.labels


def drawn(seed: int, examples: int, held_out: int) -> Digits:
    """Returns the parts of a seed."""
    data = digits()
    order = np.random.default_rng([seed, 31]).permutation(len(data.labels))
    parts = np.split(order, [examples, examples + held_out])
    return Digits(*(data.part(rows) for rows in parts))
