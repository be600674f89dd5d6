"""How long a run of the study would take."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from experiments.kit.timing import median_seconds, train_function_step
from experiments.scarce_text.training import Prepared

# Batches that are timed in turn.
_BATCHES = 4


def hours_of(prepared: Prepared, steps: int) -> dict[str, Any]:
    """Returns seconds of a step, and hours of all of them, without evaluation.

    Args:
        prepared: Of a run of a published model.
        steps: How many are timed.
    """
    batches, model = prepared.batches, prepared.model
    if batches is None or model is None:
        raise ValueError("--project_steps needs arms that are trained.")
    data = batches.dataset()
    if prepared.noise is not None:
        noise = prepared.noise
        data = data.enumerate().map(
            lambda number, element: noise(element, tf.zeros_like(number), number)
        )
    step = train_function_step(model, list(data.take(_BATCHES)))
    seconds = median_seconds(step, steps)
    total = batches.steps * prepared.values["epochs"]
    return {
        "step_seconds": seconds,
        "steps": total,
        "hours": seconds * total / 3600,
    }
