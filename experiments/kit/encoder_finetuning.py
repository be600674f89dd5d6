"""Fine-tunes encoders of studies on labelled texts.

With the optimiser, clipping and dropout of Table A.2; the rest is of a `Recipe`.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np

from experiments.kit import run_files
from experiments.kit.encoder_tasks import chosen_by, other_tests, scores
from experiments.kit.task_list import TASKS
from rlm_tf.command_line.quiet import native_silence
from rlm_tf.commands.encoders.examples import Examples, Score, label_units
from rlm_tf.data import LabelledBatches, LabelledTexts, Vocabulary
from rlm_tf.layers import TransformerEncoder
from rlm_tf.models import SequenceClassifier
from rlm_tf.optimizers.spared import spare_biases
from rlm_tf.training import (
    KeepBest,
    LinearRate,
    MetricsLog,
    ResumableBatches,
    read_metrics_log,
)

# Of encoders that are fine-tuned (Table A.2), whatever it was before.
DROPOUT = 0.1
_CHECKPOINT_SECONDS = 120.0
# The log that the best epoch is chosen by, where it is not accuracy.
_CHOSEN = "val_chosen"
# Passes over few examples and over many.
_MOST_EPOCHS, _LEAST_EPOCHS = 20, 3


class Recipe(NamedTuple):
    """How an encoder is fine-tuned.

    Attributes:
        rate: The highest, of AdaMax.
        batch_size: Examples of a step.
        warm_up: Share of the steps in which the rate rises.
        clip_norm: Of the gradient.
        pooling: Of `SequenceClassifier`.
        steps: Epochs have so many steps together, but for few or many examples.
        epochs: How many there are; None: as `steps` has it.
        weight_decay: Of all weights but biases and normalisation.
        length: Most pieces of a row; None: the task's.
    """

    rate: float = 1e-3
    batch_size: int = 32
    warm_up: float = 0.1
    clip_norm: float = 1.0
    pooling: str = "mean"
    steps: int = 600
    epochs: int | None = None
    weight_decay: float = 0.0
    length: int | None = None


def epochs_of(recipe: Recipe, steps: int) -> int:
    """Returns how many epochs of so many steps a recipe has."""
    own = min(max(-(-recipe.steps // steps), _LEAST_EPOCHS), _MOST_EPOCHS)
    return recipe.epochs or own


class _Look(keras.callbacks.Callback):
    """Logs the metric that counts on held-out examples, after each epoch."""

    def __init__(
        self,
        classifier: SequenceClassifier,
        inputs: Any,
        texts: LabelledTexts,
        metric: Score,
    ) -> None:
        super().__init__()
        self._classifier = classifier
        self._inputs = inputs
        self._texts = texts
        self._metric = metric

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        said = self._classifier.predict(self._inputs, verbose=0).argmax(axis=-1)
        if logs is not None:
            logs[_CHOSEN] = self._metric(self._texts, said)

    def get_state(self) -> dict[str, Any]:
        """Returns nothing: there is no state."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes nothing over."""


class Wrapped(NamedTuple):
    """A classifier in what trains it.

    Attributes:
        model: Trained; not compiled.
        transform: Of its batches, or None.
    """

    model: keras.Model
    transform: Any


def adamax(recipe: Recipe) -> keras.optimizers.Optimizer:
    """Returns the optimiser of Table A.2."""
    optimizer = keras.optimizers.Adamax(
        recipe.rate,
        beta_2=0.98,
        epsilon=1e-6,
        weight_decay=recipe.weight_decay or None,
    )
    return spare_biases(optimizer)


# Share of predictions that IMM matches, and extended contexts of one.
_OF_IMM = ("imm_coverage", "imm_count")
Wrap = Callable[[SequenceClassifier], Wrapped]


def finetune(
    encoder: TransformerEncoder,
    vocabulary: Vocabulary,
    task: str,
    examples: Examples,
    folder: pathlib.Path,
    *,
    recipe: Recipe,
    seed: int,
    wrap: Wrap | None = None,
) -> dict[str, Any]:
    """Trains a classifier on an encoder, and returns what its best epoch scores.

    Args:
        encoder: It is trained, too.
        vocabulary: Of the encoder.
        task: Of `task_list.TASKS`.
        examples: Of the task.
        folder: Of checkpoints and logs; a killed run goes on from there.
        recipe: The settings.
        seed: Of the head, dropout and order.
        wrap: Puts the classifier into what trains it; None: it is trained as it is.
    """
    keras.utils.set_random_seed(seed)
    is_regression = examples.train.is_regression
    classifier = SequenceClassifier(
        encoder,
        None if is_regression else len(examples.train.names),
        pooling="mean" if recipe.pooling == "mean" else "cls",
        clip_norm=recipe.clip_norm,
        seed=seed,
        **label_units(examples.train),
    )
    model, transform = wrap(classifier) if wrap else Wrapped(classifier, None)
    model.compile(adamax(recipe))
    length, size = recipe.length or TASKS[task].length, recipe.batch_size

    def batched(texts: LabelledTexts) -> LabelledBatches:
        with native_silence():
            return LabelledBatches(texts, vocabulary, length, size, seed=seed)

    train = batched(examples.train)
    epochs = epochs_of(recipe, train.steps)
    steps = epochs * train.steps
    looks: list[keras.callbacks.Callback] = []
    keep = KeepBest("val_accuracy", "max", ties="last")
    if is_regression:
        keep = KeepBest("val_squared_error")
    elif TASKS[task].metrics[0] != "accuracy":
        keep = KeepBest(_CHOSEN, "max", ties="last")
        inputs = batched(examples.valid).in_order().map(lambda x, _: x)
        looks = [_Look(classifier, inputs, examples.valid, chosen_by(task))]
    log = MetricsLog(folder / "metrics.jsonl", seconds=True)
    run_files.fit_resumably(
        model,
        ResumableBatches(train, transform=transform),
        folder,
        epochs,
        [*looks, keep, log, LinearRate(steps, int(recipe.warm_up * steps))],
        _CHECKPOINT_SECONDS,
        validation_data=batched(examples.valid).in_order(),
    )
    keep.best.restore(model)
    logged = read_metrics_log(log.path)
    found: dict[str, float] = {}
    for ending, texts in {"": examples.test, **other_tests(task)}.items():
        test = batched(texts)
        inputs = test.in_order().map(lambda x, _: x)
        said = np.asarray(classifier.predict(inputs, verbose=0))
        said = said.reshape(-1) if is_regression else said.argmax(axis=-1)
        found |= scores(task, texts, said, ending)
    return {
        "epochs": epochs,
        "best_epoch": 1 + int(keep.best.epoch or 0),
        # More is better.
        "valid_score": -float(keep.best.value),
        "test": found,
        "cut": float(test.cut.mean()),
        # Of IMM, in the last epoch.
        **{name: logged[-1][name] for name in _OF_IMM if name in logged[-1]},
        "seconds": logged[-1]["seconds"],
    }
