"""Numbers of teachers and students, one for each instance."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from experiments.mixed_features.instances import TRANSFORMATIONS, Instances
from experiments.mixed_features.networks import PatchNetworks, form
from rlm_tf.evaluation import expected_calibration_error

_LEAST = 1e-30
# Pairs of patches of one feature that the Lipschitz constant is measured on.
_PAIRS = 2000
# Patches of a feature that are compared with each other.
_MOST_COMPARED = 500


def against_truth(probs: np.ndarray, data: Instances) -> dict[str, list[float]]:
    """Returns total variation and KL to the known distributions, of each instance."""
    p, q = data.probs, np.maximum(probs, _LEAST)
    return {
        "tv": (np.abs(p - q).sum(axis=2) / 2).mean(axis=1).tolist(),
        "kl": (p * (np.log(p) - np.log(q))).sum(axis=2).mean(axis=1).tolist(),
    }


def on_labels(probs: np.ndarray, data: Instances) -> dict[str, list[float]]:
    """Returns accuracy, loss and calibration on labels, of each instance."""
    found: dict[str, list[float]] = {"accuracy": [], "nll": [], "ece": []}
    for own, labels in zip(probs, data.labels, strict=True):
        said = np.maximum(own[np.arange(len(labels)), labels], _LEAST)
        found["accuracy"].append(float(np.mean(own.argmax(axis=1) == labels)))
        found["nll"].append(float(-np.log(said).mean()))
        found["ece"].append(expected_calibration_error(own, labels))
    return found


def bayes(data: Instances) -> dict[str, list[float]]:
    """Returns accuracy and loss of the truth."""
    found = on_labels(data.probs, data)
    return {name: found[name] for name in ("accuracy", "nll")}


def smoothness(networks: PatchNetworks, data: Instances) -> dict[str, list[float]]:
    """Returns how little extracted features change, of each instance.

    `lipschitz_x`: of two patches of one feature, the most that their features differ by
    for the distance of what they show (Definition 4). `robustness`: the most that
    transforming a patch changes its features (Definition 5). Both over the norm of the
    features, of which the published bounds say nothing.

    Of what is said of patches of one feature, and Lemma 6, in the 2-norm: `spread` is
    the most that two differ by, L_z, `distance` the most that one differs from the mean
    label of the feature's occurrences, both means over features; `within` is the share
    of the features whose distance is at most L_z, as the lemma has it.
    """
    number, _, _, width = data.x.shape
    flat = tf.constant(data.x.reshape(number, -1, width))
    plain = np.asarray(networks.features(flat))
    scale = np.linalg.norm(plain, axis=2).mean(axis=1)
    change = [
        np.linalg.norm(np.asarray(networks.features(form(flat, each))) - plain, axis=2)
        for each in TRANSFORMATIONS[1:]
    ]
    robustness = np.max(change, axis=(0, 2)) / scale
    steepest = []
    for instance in range(number):
        names = data.features[instance].ravel()
        rng = np.random.default_rng(instance)
        pairs = rng.integers(len(names), size=[_PAIRS, 2])
        same = pairs[
            (names[pairs[:, 0]] == names[pairs[:, 1]]) & (np.diff(pairs)[:, 0] != 0)
        ]
        apart = [
            np.linalg.norm(values[same[:, 0]] - values[same[:, 1]], axis=1)
            for values in (plain[instance], np.asarray(flat[instance]))
        ]
        steepest.append(float(np.max(apart[0] / apart[1]) / scale[instance]))
    said = np.exp(np.asarray(networks.patch_log_probs(tf.constant(data.x))))
    parts = zip(said, data.features, data.labels, strict=True)
    lemma_6 = [_of_features(*each) for each in parts]
    return {
        "lipschitz_x": steepest,
        "robustness": robustness.tolist(),
        **{name: [each[name] for each in lemma_6] for name in lemma_6[0]},
    }


def variances(data: Instances) -> list[float]:
    """Returns v of Theorem 3, of each instance: the largest variance of a feature.

    The mean squared distance of what patches of the feature show to their mean.
    """
    found = []
    for x, features in zip(data.x, data.features, strict=True):
        own = [x[features == feature] for feature in np.unique(features)]
        found.append(max(float(each.var(axis=0).sum()) for each in own))
    return found


def _of_features(
    said: np.ndarray, features: np.ndarray, labels: np.ndarray
) -> dict[str, float]:
    """Returns the numbers of Lemma 6 of one instance.

    Args:
        said: Of each patch, `[N, M, K]`.
        features: Int `[N, M]`.
        labels: Int `[N]`.
    """
    targets = np.eye(said.shape[-1])[labels]
    spreads, distances = [], []
    for feature in np.unique(features):
        rows, patches = np.nonzero(features == feature)
        own, mean = said[rows, patches], targets[rows].mean(axis=0)
        distances.append(np.linalg.norm(own - mean, axis=1).max())
        some = own[:: -(-len(own) // _MOST_COMPARED)]
        apart = np.linalg.norm(some[:, None] - some[None], axis=2).max()
        spreads.append(apart)
    within = np.array(distances) <= np.array(spreads)
    return {
        "spread": float(np.mean(spreads)),
        "distance": float(np.mean(distances)),
        "within": float(within.mean()),
    }


def means(found: dict[str, Any]) -> dict[str, float]:
    """Returns the mean over instances of each number."""
    return {name: float(np.mean(values)) for name, values in found.items()}
