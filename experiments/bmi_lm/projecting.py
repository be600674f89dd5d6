"""How long a run of the paper's size would take, from a few of its steps."""

from __future__ import annotations

import time
from typing import Any

import keras
import numpy as np

from experiments.kit.timing import train_function_step
from rlm_tf.training import ResumableBatches


def project(
    model: keras.Model, data: ResumableBatches, steps: int, epochs: int
) -> dict[str, Any]:
    """Returns the seconds of a step of each phase, and the hours of all epochs.

    Args:
        model: Compiled.
        data: Its batches.
        steps: How many steps are timed, after one that is not.
        epochs: Of a run.
    """
    has_phases = getattr(model, "phase_two", None) is not None
    found: dict[str, Any] = {"steps_per_epoch": data.steps, "epochs": epochs}
    # Windows of one length: others would be traced while the time is taken.
    elements = [next(iter(data.dataset))] * 2
    for phase in (0, 1) if has_phases else (0,):
        if has_phases:
            model.set_phase(phase)
        step = train_function_step(model, elements)
        times = []
        for number in range(steps + 1):
            began = time.perf_counter()
            step()
            if number:
                times.append(time.perf_counter() - began)
        found[f"step_seconds_phase{phase}"] = float(np.median(times))
    seconds = found[f"step_seconds_phase{int(has_phases)}"]
    found["hours_of_all_epochs"] = seconds * data.steps * epochs / 3600
    return found
