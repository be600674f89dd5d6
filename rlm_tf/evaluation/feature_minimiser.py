"""What a network that sees one feature at a time says after training on labels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_integer


def feature_minimiser(
    features: npt.ArrayLike,
    labels: npt.ArrayLike,
    num_features: int,
    num_classes: int,
) -> np.ndarray:
    """Returns the minimiser of the cross-entropy by feature (Dong 2025, Lemma 3).

    The loss is the mean over patches of -ln f(y | z_m), what the modified softmax
    exp(mean_m ln f(. | z_m)) makes of it. So every occurrence of a feature counts, two
    in one input twice; the lemma as printed divides by the number of inputs, its proof
    by that of inputs with the feature.

    Args:
        features: Int `[N, M]`, of each input's patches.
        labels: Int `[N]`.
        num_features: Z.
        num_classes: K.

    Returns:
        `[Z, K]`; of a feature that does not occur, not-a-number.

    Raises:
        ValueError: If shapes do not fit, or an id is out of range.
    """
    name = "feature_minimiser"
    check_integer(name, "num_features", num_features, 1)
    check_integer(name, "num_classes", num_classes, 1)
    patches, own = np.asarray(features), np.asarray(labels)
    if patches.ndim != 2 or own.shape != patches.shape[:1]:
        raise ValueError(
            f"{name}: `features` must have axes [N M] and `labels` [N], found "
            f"{patches.shape} and {own.shape}."
        )
    for argument, ids, most in (
        ("features", patches, num_features),
        ("labels", own, num_classes),
    ):
        if not np.issubdtype(ids.dtype, np.integer) or (
            ids.size and not (ids.min() >= 0 and ids.max() < most)
        ):
            raise ValueError(f"{name}: `{argument}` must be integers in [0, {most}).")
    counts = np.zeros([num_features, num_classes])
    np.add.at(counts, (patches, own[:, np.newaxis]), 1)
    with np.errstate(invalid="ignore"):
        return counts / counts.sum(axis=1, keepdims=True)
