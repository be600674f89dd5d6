"""The known distribution, and what many instances of it are trained and judged on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlm_tf.data import MixedFeatures

# K = 3 classes, Z = 5 features, M = 3 patches.
FEATURE_PROBS = (0.3, 0.25, 0.2, 0.15, 0.1)
LABEL_PROBS = (
    (0.7, 0.2, 0.1),
    (0.1, 0.7, 0.2),
    (0.2, 0.1, 0.7),
    (0.5, 0.4, 0.1),
    (1 / 3, 1 / 3, 1 / 3),
)
PATCHES = 3
# What training shows of each patch, drawn anew in each epoch.
TRANSFORMATIONS = ("identity", "flip", "shift")
_SIGNS_SEED = 7


class Instances(NamedTuple):
    """S instances of one distribution.

    Attributes:
        x: float32 `[S, N, M, b]`, without transformations.
        features: Int `[S, N, M]`.
        labels: Int32 `[S, N]`.
        probs: float32 `[S, N, K]`, what labels are drawn from.
    """

    x: np.ndarray
    features: np.ndarray
    labels: np.ndarray
    probs: np.ndarray


def distribution(instance: int, noise: float) -> MixedFeatures:
    """Returns the distribution of an instance, which has prototypes of its own."""
    return MixedFeatures(
        FEATURE_PROBS, LABEL_PROBS, PATCHES, noise=noise, seed=instance
    )


def drawn(seed: int, number: int, count: int, noise: float, split: int) -> Instances:
    """Returns S instances of N examples.

    Args:
        seed: Of the first instance.
        number: S.
        count: N.
        noise: Of patches.
        split: Tells training from test examples.
    """
    samples = [
        distribution(1000 * seed + instance, noise).sample(count, split)
        for instance in range(number)
    ]
    x, features, labels, probs = (np.stack(each) for each in zip(*samples, strict=True))
    return Instances(
        x.astype(np.float32),
        features,
        labels.astype(np.int32),
        probs.astype(np.float32),
    )


def signs(width: int) -> np.ndarray:
    """Returns what "flip" multiplies a patch by, `[b]`."""
    return np.random.default_rng(_SIGNS_SEED).choice([-1.0, 1.0], width).astype("f4")
