"""Cross-validation of what logistic regression with induced model matching is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_integer
from rlm_tf.models import fit_logistic_runs, logistic_logits

_RATIOS = tuple(round(0.1 * number, 1) for number in range(10))


class CrossValidation(NamedTuple):
    """What cross-validation found, for M data sets.

    Attributes:
        losses: `[M, A, R]`, mean cross-entropy of held-out examples, nats, by inverse
            bandwidth and ratio.
        accuracies: `[M, A, R]`, their share of right guesses.
        held_out_log_probs: `[M, A, R, n, 2]`, of both labels of each example, by the
            model that was trained without it.
        inverse_bandwidths: `[M]`, the best of each data set.
        ratios: `[M]`, likewise.
    """

    losses: np.ndarray
    accuracies: np.ndarray
    held_out_log_probs: np.ndarray
    inverse_bandwidths: np.ndarray
    ratios: np.ndarray


def cross_validate_logistic(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    target_probs: npt.ArrayLike,
    *,
    ratios: Sequence[float] = _RATIOS,
    inverse_bandwidths: Sequence[float] = (1.0,),
    folds: int = 5,
    seed: int = 0,
    **options: Any,
) -> CrossValidation:
    """Chooses ratio and bandwidth by held-out cross-entropy.

    All folds, ratios and bandwidths of all data sets train at once. Of equal losses the
    smallest ratio wins, then the first bandwidth.

    Args:
        x: Features `[n, D]` of one data set, or `[M, n, D]`.
        y: Labels int `[n]` or `[M, n]`.
        target_probs: The restricted model's P(y = 1), in the shape of `y`.
        ratios: Values of r = lambda / (1 + lambda) to choose from.
        inverse_bandwidths: Values of alpha to choose from.
        folds: Parts of the data, each held out once; at most n are made.
        seed: Of the split.
        **options: Others of `fit_logistic_runs`, such as `learning_rate` and `steps`.

    Returns:
        See `CrossValidation`; M is 1 for one data set.

    Raises:
        ValueError: If shapes do not fit, there are fewer than two examples, or nothing
            to choose from.
    """
    features, labels = np.asarray(x), np.asarray(y)
    targets = np.asarray(target_probs)
    if features.ndim == 2:
        features, labels, targets = features[None], labels[None], targets[None]
    function = "cross_validate_logistic"
    if features.ndim != 3 or not labels.shape == targets.shape == features.shape[:2]:
        raise ValueError(
            f"{function}: `x` must have axes [n D] or [M n D], `y` and `target_probs` "
            f"the same without D; found shapes {np.shape(x)}, {np.shape(y)} and "
            f"{np.shape(target_probs)}."
        )
    sets, count, _ = features.shape
    check_integer(function, "folds", folds, 2)
    if count < 2 or not len(ratios) or not len(inverse_bandwidths):
        raise ValueError(
            f"{function}: there must be two examples, a ratio and a bandwidth at "
            f"least; found {count} examples, {len(ratios)} ratios and "
            f"{len(inverse_bandwidths)} bandwidths."
        )
    if not np.issubdtype(features.dtype, np.floating):
        raise ValueError(
            f"{function}: `x` must be floating point, found {features.dtype}."
        )
    folds = min(folds, count)
    # Every example is in one fold; folds differ by one example at most.
    fold_of = np.random.default_rng(seed).permutation(np.arange(count) % folds)
    kept = (fold_of != np.arange(folds)[:, np.newaxis]).astype(features.dtype)
    shape = (sets, len(inverse_bandwidths), len(ratios), folds)

    def spread(values: np.ndarray, axis: int) -> np.ndarray:
        """Returns one row a run: `values` along one axis of the grid of runs."""
        rest = values.shape[1:]
        lead = [1] * len(shape)
        lead[axis] = len(values)
        wide = np.broadcast_to(values.reshape(*lead, *rest), (*shape, *rest))
        return wide.reshape(-1, *rest)

    all_features = spread(features, 0)
    weights = fit_logistic_runs(
        all_features,
        spread(labels, 0),
        spread(targets, 0),
        spread(np.asarray(ratios, features.dtype), 2),
        inverse_bandwidths=spread(np.asarray(inverse_bandwidths, features.dtype), 1),
        weights=spread(kept, 3),
        **options,
    )
    logits = logistic_logits(weights, all_features).numpy().astype(np.float64)
    logits = logits.reshape(*shape, count)
    # Of each example, by the model whose fold it is.
    held_out = np.moveaxis(logits, 3, -1)[..., np.arange(count), fold_of]
    log_probs = -np.logaddexp(0, np.stack([held_out, -held_out], axis=-1))
    own = labels[:, np.newaxis, np.newaxis]
    losses = -np.where(own == 1, log_probs[..., 1], log_probs[..., 0]).mean(axis=-1)
    accuracies = ((held_out > 0) == (own == 1)).mean(axis=-1)
    # The smallest ratio first.
    order = np.argsort(np.asarray(ratios), kind="stable")
    by_ratio = np.swapaxes(losses[:, :, order], 1, 2).reshape(sets, -1)
    best_ratio, best_bandwidth = np.divmod(
        by_ratio.argmin(axis=1), len(inverse_bandwidths)
    )
    return CrossValidation(
        losses,
        accuracies,
        log_probs,
        np.asarray(inverse_bandwidths, np.float64)[best_bandwidth],
        np.asarray(ratios, np.float64)[order][best_ratio],
    )
