"""How often an optimiser has changed the weights."""

from __future__ import annotations

from typing import Any

import keras

from rlm_tf.optimizers.decoupled_optimizer import single_optimizers


def updates_done(model: keras.Model) -> int | None:
    """Returns how often weights have changed; None if every step changes them.

    Some steps do not where gradients are accumulated over steps, or with half precision
    where a gradient overflows. What changes the weights of a part counts, too, so that
    one step may count several times.
    """
    optimizer: Any = getattr(model, "optimizer", None)
    singles = single_optimizers(optimizer).values()
    scales = getattr(optimizer, "inner_optimizer", None) is not None
    accumulates = any(
        getattr(single, "gradient_accumulation_steps", None) for single in singles
    )
    if not scales and not accumulates:
        return None
    return sum(int(single.iterations) for single in singles)
