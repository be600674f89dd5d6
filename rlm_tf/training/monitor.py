"""Looking up the values that a callback watches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras


def read_metrics(model: keras.Model) -> dict[str, float]:
    """Returns the present results of a model's metrics."""
    return {
        name: float(keras.ops.convert_to_numpy(value))
        for name, value in model.get_metrics_result().items()
    }


def monitored(logs: Mapping[str, Any] | None, monitor: str, owner: str) -> float:
    """Returns `logs[monitor]`.

    Raises:
        ValueError: If it is not there; says which logs there are.
    """
    if not logs or monitor not in logs:
        hint = ""
        if monitor.startswith("val_"):
            hint = " Give fit() `validation_data`, and leave `validation_freq` at 1."
        raise ValueError(
            f"{owner} watches `{monitor}`, which is not among the logs of the epoch: "
            f"{sorted(logs or {})}.{hint}"
        )
    return float(logs[monitor])
