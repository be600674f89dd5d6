"""What teachers and students share: networks, schedules, scores."""

from __future__ import annotations

import pathlib
from typing import Any

import keras
import numpy as np
import scipy.special

from experiments.distill_digits.config import NETWORKS, DigitsConfig
from experiments.distill_digits.data import CLASSES, SHAPE, Digits
from experiments.kit import run_files
from rlm_tf.data import ImageBatches
from rlm_tf.evaluation import (
    brier_score,
    expected_calibration_error,
    fit_temperature,
)
from rlm_tf.models.image import small_resnet, wide_resnet
from rlm_tf.training import MetricsLog, ResumableBatches, read_metrics_log

_CHECKPOINT_SECONDS = 60.0
# Where the rate falls, as in 240 epochs after 150, 180 and 210.
_FALLS = (5 / 8, 6 / 8, 7 / 8)
_SHIFT = 1


def network(name: str, seed: int) -> keras.Model:
    """Returns a network of digits."""
    keras.utils.set_random_seed(seed)
    own = NETWORKS[name]
    if "widths" in own:
        return small_resnet(own["depth"], own["widths"], CLASSES, input_shape=SHAPE)
    return wide_resnet(own["depth"], own["widen"], CLASSES, input_shape=SHAPE)


def batches(
    config: DigitsConfig, data: Digits, seed: int, mixing: str = "", alpha: float = 1.0
) -> ResumableBatches:
    """Returns training batches, shifted by a pixel at most."""
    own = ImageBatches(
        data.train,
        config.batch_size,
        seed=seed,
        shift=_SHIFT,
        mixing=mixing,
        alpha=alpha,
    )
    return ResumableBatches(own)


def optimizer(config: DigitsConfig, steps: int) -> keras.optimizers.Optimizer:
    """Returns SGD with momentum and a rate that falls in three steps."""
    total = config.epochs * steps
    bounds = [max(int(share * total), 1) for share in _FALLS]
    rates = [config.rate * 0.1**fall for fall in range(len(_FALLS) + 1)]
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay(bounds, rates)
    return keras.optimizers.SGD(schedule, momentum=0.9)


def fit(
    model: keras.Model,
    data: ResumableBatches,
    config: DigitsConfig,
    parts: Digits,
    folder: pathlib.Path,
    callbacks: list[Any],
    others: list[Any],
) -> list[dict[str, Any]]:
    """Trains a compiled model; returns what was logged."""
    log = MetricsLog(folder / "metrics.jsonl")
    run_files.fit_resumably(
        model,
        data,
        folder,
        config.epochs,
        [log, *callbacks],
        _CHECKPOINT_SECONDS,
        others,
        validation_data=parts.arrays("valid"),
    )
    return read_metrics_log(log.path)


def scores(logits: dict[str, np.ndarray], parts: Digits) -> dict[str, Any]:
    """Returns accuracy and calibration on the test digits.

    Args:
        logits: `[N, K]` by split, of `valid` and `test`.
        parts: For the labels.
    """
    temperature = fit_temperature(logits["valid"], parts.valid.labels).temperature
    labels = parts.test.labels
    found: dict[str, Any] = {"temperature": float(np.clip(temperature, 0, 1e6))}
    for name, own in (("test", 1.0), ("scaled", max(float(temperature), 1e-3))):
        probs = scipy.special.softmax(logits["test"] / own, axis=1)
        said = np.maximum(probs[np.arange(len(labels)), labels], 1e-30)
        found[name] = {
            "accuracy": float(np.mean(probs.argmax(axis=1) == labels)),
            "nll": float(-np.log(said).mean()),
            "ece": expected_calibration_error(probs, labels),
            "brier": brier_score(probs, labels),
        }
    return found


def logits_of(model: keras.Model, parts: Digits) -> dict[str, np.ndarray]:
    """Returns what a network says of held-out and test digits."""
    return {
        split: np.asarray(model.predict(parts.arrays(split)[0], verbose=0), np.float64)
        for split in ("valid", "test")
    }
