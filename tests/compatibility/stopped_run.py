"""A short run that stopped in the middle of an epoch, and its end.

Its checkpoint holds all that a step may change: weights, slots of the optimiser,
carried states, seeds, a bank, metrics, and the state of callbacks, every kind of
average among them.
"""

from __future__ import annotations

import pathlib
from typing import Any

import keras
import numpy as np

from rlm_tf import averaging, models, restricted, training
from rlm_tf.data import contiguous_batches
from tests.compatibility import arrays
from tests.compatibility.inputs import STREAM

FOLDER = arrays.FILES / "stopped_run"
EPOCHS = 2
# Steps after which it stopped: in the middle of the second epoch.
_STOP = 8


def averages() -> dict[str, averaging.WeightAverage]:
    """Returns one average of each kind by its name in the logs."""
    return {
        "tail": averaging.TailAverage(3),
        "cyclic": averaging.StochasticWeightAverage(2, every=2),
        "triggered": averaging.TriggeredAverage(1, latest=9),
        "exponential": averaging.ExponentialAverage(0.8),
        "polyak": averaging.PolyakAverage(),
        "proportional": averaging.ProportionalTailAverage(0.6, blocks=2),
    }


def _distance(model: keras.Model) -> float:
    """What averages have to make small: without data, so that it costs nothing."""
    squares = [np.sum(np.square(v.numpy())) for v in model.trainable_variables]
    return float(abs(sum(squares) - 16.8))


def _model() -> models.InducedModelMatching:
    language_model = models.RecurrentLanguageModel(
        6, 4, 1, dropout=0.3, initializer_scale=0.5, jit_loop=False, seed=3
    )
    model = models.InducedModelMatching(
        language_model,
        # Not fitted here: the digest in the checkpoint is that of the bytes of a table.
        restricted.KneserNey.load(arrays.FILES / "kneser_ney.npz"),
        models.InBatchContexts(min_count=2, bank_size=10),
        clip_norm=1.0,
        loss_scale=3.0,
    )
    model.compile(keras.optimizers.Adam(0.05, epsilon=1e-3))
    return model


class _Steps(keras.callbacks.Callback):
    """Counts the steps of this process, and ends it, as it were, after so many."""

    def __init__(self, limit: int | None) -> None:
        super().__init__()
        self.limit = limit
        self.taken = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.taken += 1
        if self.taken == self.limit:
            raise KeyboardInterrupt


def run(folder: pathlib.Path, *, stop: bool = False) -> dict[str, np.ndarray]:
    """Trains, or goes on with what the folder holds.

    Args:
        folder: Of the checkpoints and the log of metrics.
        stop: Whether to stop in the middle of the second epoch.

    Returns:
        What a run ends with, by name; of one that is stopped, nothing.
    """
    model = _model()
    batches = training.ResumableBatches(contiguous_batches(STREAM, 4, 5, prefix=0))
    averagings = [
        averaging.WeightAveraging(
            average, _distance, name=name, on_device=name != "tail"
        )
        for name, average in averages().items()
    ]
    averagings.append(
        averaging.TwoTailedAveraging(
            _distance, patience=2, every_steps=2, name="two_tailed"
        )
    )
    halving = training.LearningRateHalving(min_gain=0.12)
    rule = training.StartRule(5.9, learning_rate=0.03)
    kept = [
        training.MetricsLog(folder / "metrics.jsonl", every_steps=2),
        *averagings,
        halving,
        rule,
        training.DivergenceGuard(every_steps=3, recover=True),
        keras.callbacks.EarlyStopping("val_nll", mode="min", patience=5),
    ]
    steps = _Steps(_STOP if stop else None)
    resume = training.ExactResume(
        folder / "checkpoints", batches, kept, every_steps=1, keep=1
    )
    try:
        history = model.fit(
            batches.dataset,
            epochs=EPOCHS,
            verbose=0,
            shuffle=False,
            validation_data=contiguous_batches(STREAM[:28], 4, 5, prefix=0).dataset(),
            callbacks=[resume, steps],
        )
    except KeyboardInterrupt:
        return {}
    found = arrays.flat("history", history.history)
    found |= arrays.flat("weights", [weight.numpy() for weight in model.weights])
    found |= arrays.flat("carried", model.model.carried_states(training=True))
    found |= arrays.flat("bank", model.contexts.banks[0].features)
    found["steps"] = np.array(steps.taken)
    found["learning_rate"] = np.array(model.optimizer.learning_rate)
    found["started"] = np.array(rule.started)
    for callback in averagings:
        with callback.averaged(model) as length:
            weights = [variable.numpy() for variable in model.trainable_variables]
        found |= arrays.flat(f"averages/{callback.name}", weights)
        found[f"lengths/{callback.name}"] = np.array(length)
    rows = training.read_metrics_log(folder / "metrics.jsonl")
    found |= arrays.flat("log", {str(index): row for index, row in enumerate(rows)})
    # How the counts of contexts are logged may change.
    return {name: value for name, value in found.items() if "imm_co" not in name}
