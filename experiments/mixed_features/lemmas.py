"""What the thesis' lemmas say, by enumeration and by draws, without networks."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from experiments.mixed_features.instances import distribution
from rlm_tf.data import MixedFeatures
from rlm_tf.evaluation import feature_minimiser

_COUNTS = (100, 300, 1000, 3000, 10_000, 30_000)
_DRAWS = 20
# N where the numbers of features and patches vary.
SIZES_COUNT = 1000
_FEATURES, _PATCHES = (2, 5, 10, 20), (1, 2, 3)
_CLASSES = 3


def curves(noise: float) -> dict[str, Any]:
    """Returns the numbers of Lemmas 4 and 5 and of Theorem 2, as their tables show."""
    return {
        "lemma_4": _convergence(noise),
        "lemma_4_sizes": [
            _deviation(features, patches)
            for features in _FEATURES
            for patches in _PATCHES
        ],
        "lemma_5": [
            _residual(features, patches)
            for features in _FEATURES
            for patches in _PATCHES
        ],
        "theorem_2": _errors(noise),
    }


def independent(features: int, patches: int) -> MixedFeatures:
    """Returns independent features whose label distributions turn with their number."""
    return MixedFeatures(
        np.full(features, 1 / features), _turning(features), patches, noise=0.0
    )


def together(features: int, patches: int) -> MixedFeatures:
    """Returns features that come with those of similar labels: a topic each class.

    Features of a topic have about one label distribution, and an input has one topic:
    the assumption that Lemma 5 needs and independent features break.
    """
    topics = min(_CLASSES, features)
    own = np.arange(features) % topics
    centre = np.eye(_CLASSES)[own] * 2.0
    spread = 0.1 * np.cos(
        1.7 * np.arange(features)[:, None] + 2.1 * np.arange(_CLASSES)
    )
    labels = scipy.special.softmax(centre + spread, axis=1)
    probs = np.stack([(own == topic) / (own == topic).sum() for topic in range(topics)])
    return MixedFeatures(probs, labels, patches, noise=0.0)


def _turning(features: int) -> np.ndarray:
    angles = 1.7 * np.arange(features)[:, None] + 2.1 * np.arange(_CLASSES)
    return scipy.special.softmax(2 * np.cos(angles), axis=1)


def _residual(features: int, patches: int) -> dict[str, Any]:
    """Returns the L1 distance of a feature's mean label to its own distribution.

    `printed` divides by the number of all inputs, as Lemma 5 has it; `..._tv` are the
    errors of predictions that follow (Theorem 2).
    """
    found: dict[str, Any] = {"features": features, "patches": patches}
    for name, data in (
        ("independent", independent(features, patches)),
        ("together", together(features, patches)),
    ):
        distance = np.abs(data.limit_minimiser() - data.label_probs).sum(axis=1)
        found[name] = float(distance.mean())
        found[f"{name}_tv"] = _limit_error(data)
    data = independent(features, patches)
    inputs, probs = data.inputs()
    labels = probs[:, None] * data.label_distribution(inputs)
    printed = np.zeros([features, _CLASSES])
    for feature in range(features):
        printed[feature] = labels[(inputs == feature).any(axis=1)].sum(axis=0)
    found["printed"] = float(np.abs(printed - data.label_probs).sum(axis=1).mean())
    return found


def _convergence(noise: float) -> list[dict[str, float]]:
    """Returns how far the minimiser on N labels is from that on all there are."""
    data = distribution(0, noise)
    limit = data.limit_minimiser()
    rows = []
    for count in _COUNTS:
        apart = []
        for draw in range(_DRAWS):
            sample = data.sample(count, draw)
            found = feature_minimiser(
                sample.features, sample.labels, data.num_features, data.num_classes
            )
            apart.append(float(np.abs(found - limit).sum(axis=1).mean()))
        rows.append({"examples": count, "distance": float(np.mean(apart))})
    return rows


def _deviation(features: int, patches: int) -> dict[str, float]:
    """Returns how far labels are from the distributions that they were drawn from.

    `mean` is the L1 distance between a feature's mean label and the mean distribution
    of the same patches; `printed` has sums over inputs that contain the feature,
    divided by the number of all inputs, as Lemma 4 has it. `tv` is the error of
    predictions that follow (Theorem 2).
    """
    data = independent(features, patches)
    found: dict[str, list[float]] = {"mean": [], "printed": [], "tv": []}
    for draw in range(_DRAWS):
        sample = data.sample(SIZES_COUNT, draw)
        apart = np.eye(_CLASSES)[sample.labels] - sample.probs
        inside = sample.features[:, :, None] == np.arange(features)
        counts = inside.sum(axis=1)
        # A feature that no input has says nothing.
        seen = counts.sum(axis=0) > 0
        mean = (counts.T @ apart)[seen] / counts.sum(axis=0)[seen, None]
        printed = (counts > 0).T.astype(float) @ apart / SIZES_COUNT
        said = feature_minimiser(
            sample.features, sample.labels, features, data.num_classes
        )
        weights = np.full(SIZES_COUNT, 1 / SIZES_COUNT)
        found["mean"].append(float(np.abs(mean).sum(axis=1).mean()))
        found["printed"].append(float(np.abs(printed).sum(axis=1).mean()))
        found["tv"].append(_error(said, sample.features, weights, sample.probs))
    means = {name: float(np.mean(values)) for name, values in found.items()}
    return {"features": features, "patches": patches, **means}


def _errors(noise: float) -> list[dict[str, float]]:
    """Returns how far predictions of the minimiser are from the truth, over N."""
    data = distribution(0, noise)
    rows = []
    for count in (*_COUNTS, 0):
        errors = []
        for draw in range(_DRAWS if count else 1):
            if count:
                sample = data.sample(count, draw)
                said = feature_minimiser(
                    sample.features, sample.labels, data.num_features, data.num_classes
                )
                inputs, truth = sample.features, sample.probs
                weights = np.full(len(inputs), 1 / len(inputs))
                errors.append(_error(said, inputs, weights, truth))
            else:
                errors.append(_limit_error(data))
        rows.append({"examples": count, "tv": float(np.mean(errors))})
    return rows


def _limit_error(data: MixedFeatures) -> float:
    """Returns the error of predictions with all the data there are."""
    inputs, weights = data.inputs()
    truth = data.label_distribution(inputs)
    return _error(data.limit_minimiser(), inputs, weights, truth)


def _error(
    said: np.ndarray, inputs: np.ndarray, weights: np.ndarray, truth: np.ndarray
) -> float:
    """Returns the mean total variation of predictions to the truth.

    Args:
        said: Of each feature, `[Z, K]`; of an input, the normalised geometric mean.
        inputs: Features, int `[N, M]`.
        weights: `[N]`, of sum 1.
        truth: `[N, K]`.
    """
    mean = np.log(np.maximum(said, 1e-12))[inputs].mean(axis=1)
    probs = scipy.special.softmax(mean, axis=1)
    return float(weights @ (np.abs(probs - truth).sum(axis=1) / 2))
