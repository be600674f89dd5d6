"""How often an optimiser has changed the weights."""

from __future__ import annotations

from typing import Any

import keras


def updates_done(model: keras.Model) -> int | None:
    """Returns how often weights have changed; None if every step changes them.

    Some steps do not where gradients are accumulated over steps, or with half precision
    where a gradient overflows.
    """
    optimizer: Any = getattr(model, "optimizer", None)
    inner = getattr(optimizer, "inner_optimizer", None)
    if inner is not None:
        return int(inner.iterations)
    if getattr(optimizer, "gradient_accumulation_steps", None) is None:
        return None
    return int(optimizer.iterations)
