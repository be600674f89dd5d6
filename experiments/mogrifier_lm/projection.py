"""How long a training run would take, from a few of its steps."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from experiments.kit import machine
from experiments.kit.recurrent_config import RunConfig
from experiments.kit.timing import train_function_step
from experiments.mogrifier_lm.training import prepare
from rlm_tf.data import Corpus, Vocabulary
from rlm_tf.data.text.tokenisation import EOS
from rlm_tf.models import count_parameters

# Training characters and different ones; those of mwc are estimates.
STAND_INS = {
    "enwik8": (90_000_000, 206),
    "text8": (90_000_000, 28),
    "mwc-en": (31_000_000, 300),
    "mwc-fi": (13_000_000, 250),
}


def stand_in(name: str) -> Corpus:
    """Returns drawn characters in place of one of `STAND_INS` without its files."""
    count, different = STAND_INS[name]
    characters = [chr(0x4E00 + i) for i in range(different - 1)]
    drawn = np.random.default_rng(0).integers(different, size=count, dtype=np.int32)
    vocabulary = Vocabulary([EOS, *characters], "characters")
    return Corpus(name, drawn, drawn[:1000], drawn[:1000], vocabulary)


def project(config: RunConfig, corpus: Corpus, steps: int) -> dict[str, Any]:
    """Returns the hours that all epochs would take, without evaluations.

    Args:
        config: Settings of the run.
        corpus: Its corpus.
        steps: How many steps are timed, after two that are not.
    """
    prepared = prepare(config, corpus)
    batches = prepared.batches
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
