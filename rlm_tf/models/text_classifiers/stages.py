"""One training of a procedure: what it has said after each epoch, and at its end."""

from __future__ import annotations

import gc
import pathlib
import shutil
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import scipy.special
import tensorflow as tf

from rlm_tf.file_errors import naming
from rlm_tf.models.text_classifiers.identity import claim_training
from rlm_tf.models.text_classifiers.text_classifier import TextClassifier
from rlm_tf.training.resumable_batches import ResumableBatches
from rlm_tf.training.resume import ExactResume

_CHECKPOINTS, _SAID, _WEIGHTS = "checkpoints", "said.npz", "weights.npz"
_CHECKPOINT_SECONDS = 20.0
# Documents that are looked at together.
_ROWS = 512


class Said(NamedTuple):
    """What a classifier says of N documents.

    Attributes:
        probs: float64 `[N, C]`, at the end of the training: of a classifier that is
            sure of most documents many would be alike in single precision.
        predictions: int32 `[E, W]`, of watched documents after each epoch.
        losses: float32 `[E, W]`, likewise, -ln of the probability of their labels.
    """

    probs: np.ndarray
    predictions: np.ndarray
    losses: np.ndarray


class Watch(keras.callbacks.Callback):
    """Looks at some documents after every epoch, as they are.

    Args:
        tokens: int `[W, T]`.
        labels: int `[W]`.
    """

    def __init__(self, tokens: np.ndarray, labels: np.ndarray) -> None:
        super().__init__()
        self._tokens, self._labels = tokens, labels
        self.predictions: list[list[int]] = []
        self.losses: list[list[float]] = []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        log_probs = log_probs_of(self.model, self._tokens)
        own = -log_probs[np.arange(len(self._labels)), self._labels]
        self.predictions.append(log_probs.argmax(axis=1).tolist())
        self.losses.append(own.astype(np.float32).tolist())


def log_probs_of(
    model: TextClassifier, tokens: np.ndarray, *, passes: int = 1
) -> np.ndarray:
    """Returns log-probabilities of documents, float64 `[N, C]`.

    Args:
        model: The classifier.
        tokens: int `[N, T]`.
        passes: 1: without dropout; more: the mean of the probabilities of so many
            passes with it (Gal and Ghahramani 2016).
    """

    @tf.function(reduce_retracing=True)
    def step(rows: tf.Tensor) -> tf.Tensor:
        logits = tf.cast(model(rows, training=passes > 1), tf.float64)
        return tf.nn.log_softmax(logits)

    means = []
    for first in range(0, len(tokens), _ROWS):
        rows = tf.constant(tokens[first : first + _ROWS], tf.int32)
        drawn = [step(rows).numpy() for _ in range(passes)]
        means.append(scipy.special.logsumexp(drawn, axis=0) - np.log(passes))
    if not means:
        return np.zeros([0, model.num_classes])
    return np.concatenate(means)


def train(
    make: Callable[[], TextClassifier],
    data: ResumableBatches,
    epochs: int,
    everything: np.ndarray,
    folder: pathlib.Path | None,
    *,
    watch: Watch | None = None,
    passes: int = 1,
    others: Sequence[keras.callbacks.Callback] = (),
) -> tuple[TextClassifier, Said]:
    """Trains a new classifier, or goes on with it, or reads what it has said.

    Args:
        make: Returns the classifier, compiled.
        data: What it is trained on.
        epochs: Of the data.
        everything: All documents, int `[N, T]`, of which its probabilities are kept.
        folder: Of checkpoints and of what it has said in the end; None: none are kept.
        watch: What is looked at after every epoch; None: nothing.
        passes: See `log_probs_of`.
        others: Callbacks, which checkpoints keep if they are trackable.

    Raises:
        ValueError: If the folder is of another training.
    """
    model = make()
    if folder is not None:
        if not model.built:
            model.build()
        number = epochs * data.passes
        claim_training(folder, model, data, everything, epochs=number, passes=passes)
    if folder is not None and (folder / _SAID).exists():
        _restore(model, folder)
        with np.load(folder / _SAID) as found:
            return model, Said(*(found[name] for name in Said._fields))
    kept: list[Any] = [*others] if watch is None else [*others, watch]
    callbacks: list[Any] = [*kept, data.follow_epochs()]
    if folder is not None:
        # An epoch may be a few steps.
        resume = ExactResume(
            folder / _CHECKPOINTS,
            data,
            kept,
            every_seconds=_CHECKPOINT_SECONDS,
            after_epochs=False,
        )
        callbacks = [resume]
    model.fit(
        data.dataset, epochs=epochs, shuffle=False, verbose=0, callbacks=callbacks
    )
    # Data that a training has captured goes before the next one captures it.
    gc.collect()
    probs = np.exp(log_probs_of(model, everything, passes=passes))
    none = np.zeros([0, 0])
    said = Said(
        probs,
        np.array(watch.predictions if watch else none, np.int32),
        np.array(watch.losses if watch else none, np.float32),
    )
    if folder is not None:
        _write(
            folder / _WEIGHTS, {str(i): w for i, w in enumerate(model.get_weights())}
        )
        _write(folder / _SAID, said._asdict())
        # Nothing goes on from there any more.
        shutil.rmtree(folder / _CHECKPOINTS, ignore_errors=True)
    return model, said


def _restore(model: TextClassifier, folder: pathlib.Path) -> None:
    with np.load(folder / _WEIGHTS) as found:
        model.set_weights([found[str(i)] for i in range(len(found.files))])


def _write(path: pathlib.Path, arrays: dict[str, Any]) -> None:
    """Writes arrays beside their place, and renames them."""
    beside = path.with_name(f"{path.stem}.part.npz")
    with naming(beside):
        np.savez(beside, **arrays)
        beside.replace(path)
