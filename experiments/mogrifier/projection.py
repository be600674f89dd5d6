"""How long a training run would take, from a few of its steps."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from experiments.benchmarks import machine
from experiments.benchmarks.lstm import train_function_step
from experiments.mogrifier.config import RunConfig
from experiments.mogrifier.training import prepare
from rlm_tf.data import Corpus, contiguous_batches
from rlm_tf.models import count_parameters


def project(config: RunConfig, corpus: Corpus, steps: int) -> dict[str, Any]:
    """Returns the hours that all epochs would take, without evaluations.

    Args:
        config: Settings of the run.
        corpus: Its corpus.
        steps: How many steps are timed, after two that are not.
    """
    prepared = prepare(config, corpus)
    eos = corpus.vocabulary.eos_id
    batches = contiguous_batches(
        prepared.text, config.batch_size, config.window, prefix=eos
    )
    elements = list(batches.dataset().take(min(4, batches.steps)))
    step = train_function_step(prepared.model, elements)
    times = []
    for number in range(steps + 2):
        began = time.perf_counter()
        step()
        if number >= 2:
            times.append(time.perf_counter() - began)
    seconds = float(np.median(times))
    return {
        "width": prepared.width,
        "parameters": count_parameters(prepared.model),
        "step_seconds": seconds,
        "steps_per_epoch": batches.steps,
        "epochs": config.epochs,
        "hours_of_all_epochs": seconds * batches.steps * config.epochs / 3600,
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
    }
