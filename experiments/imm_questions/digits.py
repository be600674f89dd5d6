"""Question 6: another domain, images whose restricted model sees a patch.

The bundled digits of scikit-learn, 1797 images of 8 x 8 pixels. A network that sees
the inner 4 x 4 pixels is trained on 1000 of them: patches are assumed to be cheap. A
convolutional network gets few of these images whole. The rest is the test set.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tqdm
from sklearn.datasets import load_digits

from experiments.imm_questions.config import QuestionsConfig
from experiments.imm_questions.logistic_task import summary
from rlm_tf.evaluation import interpolate, tune_interpolation
from rlm_tf.models import NeighborModelMatching
from rlm_tf.restricted import NeuralFeatureModel

_SIDE = 8
_POOL, _VALIDATION = 1000, 100
_PATCH = [8 * row + column for row in range(2, 6) for column in range(2, 6)]
# Ratio and inverse bandwidth of each arm. On patches of 16 pixels in [0, 1] two digits
# are about 4 apart; at 1000 every example is its own only neighbour, which is noising.
_ARMS = {
    "imm": (0.5, 0.5),
    "imm, wide": (0.5, 0.25),
    "imm, narrow": (0.5, 1.0),
    "noising": (0.5, 1000.0),
    "noising, ratio 0.2": (0.2, 1000.0),
}


def compute(config: QuestionsConfig) -> dict[str, Any]:
    """Returns test accuracies by number of whole images and arm."""
    images, labels = _digits(config.seed)
    pool, test = slice(0, _POOL), slice(_POOL + _VALIDATION, None)
    validation = slice(_POOL, _POOL + _VALIDATION)
    keras.utils.set_random_seed(config.seed)
    restricted = _restricted()
    patches = _patches(images)
    restricted.fit_pairs(patches[pool], labels[pool], epochs=config.digit_epochs)
    log_p = restricted.log_probs(patches).numpy()
    patch_accuracy = (log_p[test].argmax(axis=1) == labels[test]).mean()
    cells = []
    rng = np.random.default_rng(config.seed)
    for size in tqdm.tqdm(config.digit_sizes, unit="size", disable=None):
        values: dict[str, list[float]] = {
            name: [] for name in ("none", "interpolation", *_ARMS)
        }
        for run in range(config.digit_runs):
            chosen = rng.permutation(_POOL)[:size]
            for name in ("none", *_ARMS):
                model = _trained(
                    config, run, name, restricted, images[chosen], labels[chosen]
                )
                logits = model.predict(images, batch_size=512, verbose=0)
                right = logits[test].argmax(axis=1) == labels[test]
                values[name].append(float(right.mean()))
                if name == "none":
                    log_q = logits - np.logaddexp.reduce(logits, 1, keepdims=True)
                    mixed = _mixture(log_q, log_p, labels, validation)[test]
                    right = mixed.argmax(axis=1) == labels[test]
                    values["interpolation"].append(float(right.mean()))
        for name, each in values.items():
            cells.append({"size": size, "arm": name, **summary(each, values["none"])})
    return {"cells": cells, "patch_accuracy": float(patch_accuracy)}


def _digits(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns images float32 `[N, 8, 8, 1]` in [0, 1] and labels, in random order."""
    data = load_digits()
    order = np.random.default_rng(seed).permutation(len(data.target))
    images = (data.images[order] / 16).astype(np.float32)[..., np.newaxis]
    return images, data.target[order].astype(np.int32)


def _patches(images: np.ndarray) -> np.ndarray:
    return images.reshape(len(images), -1)[:, _PATCH]


def _restricted() -> NeuralFeatureModel:
    return NeuralFeatureModel(
        keras.Sequential(
            [
                keras.Input((len(_PATCH),)),
                keras.layers.Dense(64, "relu"),
                keras.layers.Dropout(0.2),
                keras.layers.Dense(10),
            ]
        )
    )


def _network() -> keras.Model:
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((_SIDE, _SIDE, 1)),
            layers.Conv2D(16, 3, activation="relu", padding="same"),
            layers.Conv2D(32, 3, activation="relu", padding="same"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(64, "relu"),
            layers.Dense(10),
        ]
    )


def _trained(
    config: QuestionsConfig,
    run: int,
    name: str,
    restricted: NeuralFeatureModel,
    images: np.ndarray,
    labels: np.ndarray,
) -> keras.Model:
    """Returns a network trained from the initialisation of its run."""
    keras.utils.set_random_seed(1000 * config.seed + run)
    ratio, inverse_bandwidth = _ARMS.get(name, (0.0, 1.0))
    model = NeighborModelMatching(
        _network(),
        None if name == "none" else restricted,
        _PATCH,
        ratio=ratio,
        inverse_bandwidth=inverse_bandwidth,
    )
    model.compile(keras.optimizers.Adam(1e-3))
    model.fit(images, labels, batch_size=32, epochs=config.digit_epochs, verbose=0)
    return model.model


def _mixture(
    log_q: np.ndarray, log_p: np.ndarray, labels: np.ndarray, validation: slice
) -> np.ndarray:
    """Returns log((1 - mu) Q + mu P_hat) of all images, mu tuned on the validation."""
    rows, own = np.arange(_VALIDATION), labels[validation]
    mu = tune_interpolation(log_q[validation][rows, own], log_p[validation][rows, own])
    mixed = interpolate(log_q.ravel(), log_p.ravel(), mu)
    return mixed.reshape(log_q.shape)
