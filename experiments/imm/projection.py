"""A few steps of a preset, and the hours that the whole of it would take here."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import keras
import numpy as np

from experiments.imm.config import RunConfig
from experiments.imm.training import build_model
from rlm_tf.data import Corpus, contiguous_batches
from rlm_tf.restricted import KneserNey


def project(config: RunConfig, corpus: Corpus, steps: int) -> dict[str, Any]:
    """Times steps of a preset and of its parts, and multiplies.

    A step with k samples costs k times what one sample adds to the plain step: sampled
    windows are run one after the other (crosstalk gradient). So one sample is timed and
    k are computed; at width 1500 a step with ten of them would take longer than
    everything else here together.

    Args:
        config: The settings, of the arm `imm-sampled`.
        corpus: The corpus.
        steps: Steps timed of each kind, after one that is not.

    Returns:
        Seconds a step of each kind, and the hours of an epoch and of all epochs.
    """
    eos, size = corpus.vocabulary.eos_id, len(corpus.vocabulary)
    text = corpus.train[: int(len(corpus.train) * config.fraction)]
    batches = contiguous_batches(text, config.batch_size, config.window, prefix=eos)
    restricted = KneserNey(config.restricted_order).fit(text, size)
    seconds = {}
    for kind, changes in {
        "plain": {"arm": "none"},
        "one sample": {"arm": "imm-sampled", "k": 1, "every": 1},
        "in-batch": {"arm": "imm-in-batch"},
    }.items():
        part = dataclasses.replace(config, **changes)  # type: ignore[arg-type]
        model = build_model(part, size, corpus, text, restricted)
        model.compile(keras.optimizers.SGD(config.learning_rate))
        times = []
        for step in range(steps + 1):
            data = batches.dataset(start_step=step).take(1)
            began = time.perf_counter()
            model.fit(data, shuffle=False, verbose=0)
            times.append(time.perf_counter() - began)
        seconds[kind] = float(np.median(times[1:]))
        keras.backend.clear_session()
        print(f"{kind}: {seconds[kind]:.2f} s/step", flush=True)
    one = seconds["one sample"] - seconds["plain"]
    mean = seconds["plain"] + one * (1 + (config.k - 1) / config.every)
    hours = {
        "plain": seconds["plain"] * batches.steps / 3600,
        "in-batch": seconds["in-batch"] * batches.steps / 3600,
        f"sampled, k={config.k} at every {config.every}th step": mean
        * batches.steps
        / 3600,
    }
    return {
        "name": "projection",
        "config": dataclasses.asdict(config),
        "steps_per_epoch": batches.steps,
        "seconds_per_step": seconds,
        "hours_per_epoch": hours,
        "hours_of_all_epochs": {k: v * config.epochs for k, v in hours.items()},
    }
