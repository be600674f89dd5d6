"""A small language model with everything that a resumed run has to restore."""

from __future__ import annotations

import pathlib
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.models import ObjectiveModel, Term
from rlm_tf.training import (
    ExactResume,
    LearningRateHalving,
    MetricsLog,
    ResumableBatches,
)
from rlm_tf.training.state_variables import read, state_variables

BATCH, WINDOW, VOCABULARY, STEPS = 4, 3, 7, 6


class ToyModel(ObjectiveModel):
    """Predicts the next token from this one and a carried summary; has dropout."""

    def __init__(self, **kwargs: Any):
        super().__init__(term_names=("nll",), **kwargs)
        self.embedding = keras.layers.Embedding(
            VOCABULARY,
            5,
            embeddings_initializer=keras.initializers.RandomNormal(seed=1),
        )
        self.dropout = keras.layers.Dropout(0.4, seed=2)
        self.hidden = keras.layers.Dense(5, kernel_initializer=_glorot(3))
        self.out = keras.layers.Dense(VOCABULARY, kernel_initializer=_glorot(4))
        self.carried = {
            name: tf.Variable(
                tf.zeros([1, 5]),
                shape=[None, 5],
                trainable=False,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
            )
            for name in ("training", "evaluation")
        }
        self.embedding.build((None, None))
        self.hidden.build((None, None, 5))
        self.out.build((None, None, 5))
        self.built = True

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        tokens, start = inputs
        carried = self.carried["training" if training else "evaluation"]
        state = tf.cond(
            tf.reduce_all(start > 0),
            lambda: tf.zeros([tf.shape(start)[0], 5]),
            lambda: tf.convert_to_tensor(carried),
        )
        x = self.dropout(self.embedding(tokens), training=training)
        x = keras.ops.tanh(self.hidden(x + tf.cast(state, x.dtype)[:, None]))
        carried.assign(tf.cast(tf.stop_gradient(x[:, -1]), tf.float32))
        return self.out(self.dropout(x, training=training))

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> list[Term]:
        logits = tf.cast(self(x, training=training), tf.float32)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        return [Term("nll", loss, sample_weight)]


def _glorot(seed: int) -> keras.initializers.Initializer:
    return keras.initializers.GlorotUniform(seed=seed)


def toy_batches(seed: int, steps: int = STEPS) -> tf.data.Dataset:
    """Returns batches in the form of `contiguous_batches`."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, VOCABULARY, (steps, BATCH, WINDOW + 1)).astype(np.int32)
    start = np.zeros((steps, BATCH), np.int32)
    start[0] = 1
    weights = np.ones((steps, BATCH, WINDOW), np.float32)
    return tf.data.Dataset.from_tensor_slices(
        ((tokens[:, :, :-1], start), tokens[:, :, 1:], weights)
    )


def noise(element: Any, epoch: tf.Tensor, step: tf.Tensor) -> Any:
    """Replaces some tokens; depends on epoch and step."""
    (tokens, start), targets, weights = element
    seed = tf.stack([epoch, step])
    drawn = tf.random.stateless_uniform(
        tf.shape(tokens), seed, 0, VOCABULARY, dtype=tf.int32
    )
    blank = tf.random.stateless_uniform(tf.shape(tokens), seed + 1000) < 0.2
    return (tf.where(blank, drawn, tokens), start), targets, weights


class Interruption(Exception):  # noqa: N818 (not an error of the library)
    """Stands for a kill inside one process."""


class InterruptAt(keras.callbacks.Callback):
    """Calls `action` after a number of training steps of this process."""

    def __init__(self, steps: int, action: Any):
        super().__init__()
        self.left = steps
        self.action = action

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.left -= 1
        if self.left == 0:
            self.action()


class FirstStep(keras.callbacks.Callback):
    """Notes the (epoch, step) with which this process begins; None: it has none."""

    def __init__(self, batches: ResumableBatches):
        super().__init__()
        self.batches = batches
        self.moment: tuple[int, int] | None = None

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        # `ExactResume`, which comes first, has set the data's position.
        if self.moment is None:
            self.moment = (epoch, int(self.batches._start))


def interrupt() -> None:
    raise Interruption


def train(
    folder: pathlib.Path,
    *,
    epochs: int = 4,
    optimizer: Any = None,
    model: keras.Model | None = None,
    strategy: tf.distribute.Strategy | None = None,
    extra: tuple[keras.callbacks.Callback, ...] = (),
    callbacks: list[keras.callbacks.Callback] | None = None,
    batches: ResumableBatches | None = None,
    valid: tf.data.Dataset | None = None,
    steps_per_execution: int = 1,
    **resume: Any,
) -> dict[str, Any]:
    """Runs the program that the tests interrupt; returns all that must agree."""
    strategy = strategy or tf.distribute.get_strategy()
    batches = batches or ResumableBatches(toy_batches(0), transform=noise)
    with strategy.scope():
        model = model or ToyModel()
        model.compile(
            optimizer or keras.optimizers.SGD(0.5, momentum=0.9),
            steps_per_execution=steps_per_execution,
        )
    if callbacks is None:
        callbacks = [
            MetricsLog(folder / "metrics.jsonl", every_steps=2),
            LearningRateHalving(),
        ]
    saver = ExactResume(folder / "checkpoints", batches, callbacks, **resume)
    first = FirstStep(batches)
    history = model.fit(
        batches.dataset,
        epochs=epochs,
        verbose=0,
        shuffle=False,
        validation_data=toy_batches(1, 2) if valid is None else valid,
        callbacks=[*extra, saver, first],
    )
    log = folder / "metrics.jsonl"
    return {
        "first": first.moment,
        "arrays": read(state_variables(model)),
        "history": history.history,
        "epochs": history.epoch,
        "log": log.read_text() if log.exists() else "",
        "model": model,
        "callbacks": callbacks,
    }


def assert_same(result: dict[str, Any], expected: dict[str, Any]) -> None:
    """Checks that two runs of `train` agree in every bit."""
    assert result["history"] == expected["history"]
    assert result["epochs"] == expected["epochs"]
    assert result["log"] == expected["log"]
    assert set(result["arrays"]) == set(expected["arrays"])
    for name, array in expected["arrays"].items():
        np.testing.assert_array_equal(result["arrays"][name], array, err_msg=name)
