"""Optimal lengths of averages by brute force (Figure 3.2, Propositions 2 and 4)."""

from __future__ import annotations

import itertools
import math
import pathlib
from typing import Any

import keras
import numpy as np

from experiments.averaging.config import AveragingConfig
from experiments.averaging.training import nll_of, texts, train
from rlm_tf.averaging import TwoTailedAverage


class AllLengths(keras.callbacks.Callback):
    """Keeps the sum of every period, and evaluates the averages of all lengths.

    Lengths are multiples of the period, which are all that 2TA can have. Both
    algorithms of 2TA run beside it.

    Args:
        period: E.
        data: What losses are measured on.

    Attributes:
        losses: For each evaluation the losses of lengths E, 2E, ..., all.
        raw: The losses of the iterates.
        two_tailed: For each algorithm what it reports at each evaluation.
    """

    def __init__(self, period: int, data: Any):
        super().__init__()
        self.period = period
        self.data = data
        self.losses: list[list[float]] = []
        self.raw: list[float] = []
        self.two_tailed: dict[str, list[dict[str, Any]]] = {"1": [], "2": []}
        self._averages = {
            name: TwoTailedAverage(extended=name == "2") for name in self.two_tailed
        }
        self._steps = 0
        self._sum: list[np.ndarray] = []
        # Sums of all iterates up to each evaluation.
        self._sums: list[list[np.ndarray]] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        weights = self._weights()
        for average in self._averages.values():
            average.update(weights)
        if not self._sum:
            self._sum = [np.zeros_like(w) for w in weights]
            self._sums.append([total.copy() for total in self._sum])
        for total, weight in zip(self._sum, weights, strict=True):
            total += weight
        self._steps += 1
        if self._steps % self.period == 0:
            self._evaluate(weights)

    def get_state(self) -> dict[str, Any]:
        return {
            "losses": self.losses,
            "raw": self.raw,
            "two_tailed": self.two_tailed,
            "averages": {k: v.get_state() for k, v in self._averages.items()},
            "steps": self._steps,
            "sum": self._sum,
            "sums": self._sums,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        self.losses, self.raw = state["losses"], state["raw"]
        self.two_tailed = state["two_tailed"]
        for name, average in self._averages.items():
            average.set_state(state["averages"][name], on_device=False)
        self._steps = state["steps"]
        self._sum, self._sums = state["sum"], state["sums"]

    def _evaluate(self, weights: list[np.ndarray]) -> None:
        self._sums.append([total.copy() for total in self._sum])
        known: dict[bytes, float] = {}

        def loss_fn(candidate: Any) -> float:
            # What was evaluated once is not evaluated again.
            key = np.asarray(candidate[0], np.float32).tobytes()
            if key not in known:
                self._assign(candidate)
                known[key] = nll_of(self.model, self.data)
            return known[key]

        raw = [weight.astype(np.float32) for weight in weights]
        kept = [(v, v.value.numpy()) for m in self.model.metrics for v in m.variables]
        latest = self._sums[-1]
        losses: list[float] = []
        for earlier in reversed(self._sums[:-1]):
            count = self.period * (len(losses) + 1)
            mean = [(a - b) / count for a, b in zip(latest, earlier, strict=True)]
            losses.append(round(loss_fn(mean), 6))
        self.losses.append(losses)
        self.raw.append(round(loss_fn(weights), 6))
        for name, average in self._averages.items():
            result = average.evaluate(loss_fn, weights)
            self.two_tailed[name].append(
                {
                    "loss": round(result.loss, 6),
                    "length": result.length,
                    "short": average.short_length,
                    "long": average.long_length,
                    "event": average.event,
                }
            )
        self._assign(raw)
        for variable, value in kept:
            variable.assign(value)

    def _weights(self) -> list[np.ndarray]:
        return [
            v.value.numpy().astype(np.float64) for v in self.model.trainable_variables
        ]

    def _assign(self, weights: Any) -> None:
        for variable, weight in zip(
            self.model.trainable_variables, weights, strict=True
        ):
            variable.assign(np.asarray(weight, np.float32))


def compute(config: AveragingConfig, folder: pathlib.Path) -> dict[str, Any]:
    """Returns the losses of all lengths, the best lengths, and how 2TA compares."""
    given = texts(config, config.length_fraction)
    period = max(1, math.ceil(given.train.steps / config.length_evaluations))
    watcher = AllLengths(period, given.valid)
    train(
        config,
        given,
        [],
        folder,
        epochs=config.length_epochs,
        width=config.length_width,
        dropout=False,
        learning_rate=config.length_rate,
        callbacks=[watcher],
    )
    optimal = [(int(np.argmin(losses)) + 1) * period for losses in watcher.losses]
    return {
        "period": period,
        "losses": watcher.losses,
        "raw": watcher.raw,
        "optimal": optimal,
        "two_tailed": watcher.two_tailed,
        "bounds": {
            name: bounds(rows, optimal, period)
            for name, rows in watcher.two_tailed.items()
        },
    }


def bounds(
    rows: list[dict[str, Any]], optimal: list[int], period: int
) -> dict[str, Any]:
    """Returns how often Propositions 2 and 4 hold along a run.

    Args:
        rows: What 2TA did at each evaluation.
        optimal: The best length there, of multiples of the period.
        period: E.
    """
    short = [row["short"] < best for row, best in zip(rows, optimal, strict=True)]
    long = [
        row["long"] < 2 * best + period for row, best in zip(rows, optimal, strict=True)
    ]
    switches = [i for i, row in enumerate(rows) if "switch" in row["event"]]
    nearly = [
        any(abs(rows[i]["long"] - optimal[i]) <= period for i in range(first, last))
        for first, last in itertools.pairwise(switches)
    ]
    return {
        "evaluations": len(rows),
        "short_below_optimal": sum(short),
        "long_below_twice": sum(long),
        "intervals": len(nearly),
        "intervals_nearly_optimal": sum(nearly),
    }
