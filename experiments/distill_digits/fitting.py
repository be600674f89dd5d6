"""What teachers and students share: networks, schedules, scores."""

from __future__ import annotations

import pathlib
from typing import Any

import keras
import numpy as np
import scipy.special
import tensorflow as tf

from experiments.distill_digits.config import NETWORKS, SETS, DigitsConfig
from experiments.distill_digits.data import Parts
from experiments.kit import run_files
from rlm_tf.evaluation import (
    brier_score,
    expected_calibration_error,
    fit_temperature,
)
from rlm_tf.models.image import resnet, shufflenet_v2, small_resnet, wide_resnet
from rlm_tf.training import MetricsLog, ResumableBatches, read_metrics_log

_CHECKPOINT_SECONDS = 60.0
_MOMENTUM = 0.9
# Images of a batch that is only looked at.
_ROWS = 256
# From so many classes on the right one may be among five.
_MANY = 20


@keras.saving.register_keras_serializable("distill_digits")
class Momentum(keras.optimizers.SGD):
    """SGD whose velocity is a sum of gradients alone, as PyTorch has it.

    Keras' has rates in it, so that after a rate has fallen to a tenth the old one goes
    on for ten steps, which are two epochs of 300 images.
    """

    def update_step(
        self, gradient: tf.Tensor, variable: keras.Variable, learning_rate: tf.Tensor
    ) -> None:
        """Takes a step of one variable."""
        rate = tf.cast(learning_rate, variable.dtype)
        velocity = self.momentums[self._get_variable_index(variable)]
        moved = self.momentum * velocity + tf.cast(gradient, variable.dtype)
        self.assign(velocity, moved)
        self.assign_sub(variable, rate * moved)


def network(name: str, seed: int, data: str = "digits") -> keras.Model:
    """Returns a network of a set of images."""
    keras.utils.set_random_seed(seed)
    own, kind = dict(NETWORKS[name]), SETS[data]
    options: dict[str, Any] = {"input_shape": kind.shape}
    if "blocks" in own:
        options["stem"] = "imagenet" if kind.size else "cifar"
        return resnet(own.pop("blocks"), kind.classes, **own, **options)
    if "widths" in own:
        return small_resnet(own["depth"], own["widths"], kind.classes, **options)
    if "widen" in own:
        return wide_resnet(own["depth"], own["widen"], kind.classes, **options)
    return shufflenet_v2(kind.classes, **options)


def epochs_of(config: DigitsConfig, is_student: bool) -> int:
    """Returns how often a teacher or a student sees the images."""
    return config.epochs + (SETS[config.data].more if is_student else 0)


def optimizer(
    config: DigitsConfig, steps: int, is_student: bool = False
) -> keras.optimizers.Optimizer:
    """Returns SGD with momentum; its rate falls by steps of a teacher's epochs."""
    first = (config.student_rate if is_student else 0.0) or config.rate
    total, falls = config.epochs * steps, SETS[config.data].falls
    bounds = [max(int(share * total), 1) for share in falls]
    rates = [first * 0.1**fall for fall in range(len(falls) + 1)]
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay(bounds, rates)
    return Momentum(schedule, momentum=_MOMENTUM)


def fit(
    model: keras.Model,
    data: ResumableBatches,
    config: DigitsConfig,
    parts: Parts,
    folder: pathlib.Path,
    callbacks: list[Any],
    others: list[Any],
    is_student: bool = False,
) -> list[dict[str, Any]]:
    """Trains a compiled model; returns what was logged."""
    log = MetricsLog(folder / "metrics.jsonl", seconds=True)
    run_files.fit_resumably(
        model,
        data,
        folder,
        epochs_of(config, is_student),
        [log, *callbacks],
        _CHECKPOINT_SECONDS,
        others,
        validation_data=parts.dataset("valid", _ROWS),
    )
    return read_metrics_log(log.path)


def scores(logits: dict[str, np.ndarray], parts: Parts) -> dict[str, Any]:
    """Returns accuracy and calibration on the test images.

    Args:
        logits: `[N, K]` by split, of `valid` and `test`.
        parts: For the labels.
    """
    temperature = fit_temperature(logits["valid"], parts.labels("valid")).temperature
    labels = parts.labels("test")
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
        if probs.shape[1] >= _MANY:
            best = np.argpartition(-probs, 5, axis=1)[:, :5]
            found[name]["top5"] = float((best == labels[:, np.newaxis]).any(1).mean())
    return found


def logits_of(model: keras.Model, parts: Parts) -> dict[str, np.ndarray]:
    """Returns what a network says of held-out and test images, float64 `[N, K]`."""
    return {split: said(model, parts, split) for split in ("valid", "test")}


def said(model: Any, parts: Parts, split: str) -> np.ndarray:
    """Returns the logits of a part, float64 `[N, K]`, of anything that is called."""
    step = tf.function(lambda x: model(x, training=False), reduce_retracing=True)
    logits = [step(x).numpy() for x, _ in parts.dataset(split, _ROWS)]
    return np.concatenate(logits).astype(np.float64)
