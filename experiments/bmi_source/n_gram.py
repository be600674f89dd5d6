"""The simple peer: an n-gram of the same text."""

from __future__ import annotations

import pathlib
import time
from typing import Any, NamedTuple

import numpy as np

from experiments.bmi_source.config import GRID
from experiments.bmi_source.source_run import SourceRun
from experiments.kit import machine
from experiments.kit.grids import command_of
from rlm_tf.evaluation import restricted_target_log_probs, tune_floor
from rlm_tf.restricted import KneserNey
from rlm_tf.restricted.ngrams.backoff_model import BackoffModel

_ORDERS = range(1, 7)


class Counted(NamedTuple):
    """The best n-gram on validation text.

    Attributes:
        order: Its order.
        model: With a floor.
        valid_nll: Its loss, in nats a token.
        seconds: To count and choose among all orders.
    """

    order: int
    model: BackoffModel
    valid_nll: float
    seconds: float


def count(run: SourceRun) -> Counted:
    """Counts n-grams of every order up to 6; returns the best on validation text."""
    start, valid = time.monotonic(), run.valid
    found = []
    for order in _ORDERS:
        bare = KneserNey(order).fit(run.text, run.source.vocabulary_size)
        model = bare.with_floor(tune_floor(bare, valid, prefix=0))
        nll = -np.mean(restricted_target_log_probs(model, valid, prefix=0))
        found.append((float(nll), order, model))
    nll, order, model = min(found, key=lambda each: each[0])
    return Counted(order, model, nll, time.monotonic() - start)


def score(run: SourceRun, counted: Counted, folder: pathlib.Path) -> dict[str, Any]:
    """Returns the row of an n-gram."""
    found = restricted_target_log_probs(counted.model, run.test, prefix=0)
    return {
        "name": folder.name,
        "command": command_of(GRID, run.config, run.seed, **run.chosen),
        "sentence_length": run.length,
        "sentences": run.sentences,
        "arm": run.arm,
        "seed": run.seed,
        **run.judge(found),
        "order": counted.order,
        "valid_nll": counted.valid_nll,
        "seconds_to_best": counted.seconds,
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
        "finished": time.strftime("%Y-%m-%d"),
    }
