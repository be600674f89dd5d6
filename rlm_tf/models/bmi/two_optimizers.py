"""The optimisers of a language model and of its discriminator, as one."""

from __future__ import annotations

from typing import Any

import keras

from rlm_tf.optimizers.decoupled_optimizer import DecoupledOptimizer

_CLIP_NORM = 0.25
_RATE, _EPSILON = 2e-4, 1e-8


def two_optimizers(
    model: Any, optimizer: Any, discriminator_optimizer: Any
) -> DecoupledOptimizer:
    """Returns what `BootstrappedMutualInformation.compile` trains with.

    Args:
        model: The wrapper.
        optimizer: Of the language model, or a `DecoupledOptimizer` of both parts.
        discriminator_optimizer: None: Adam at rate 2e-4.

    Raises:
        ValueError: If a `DecoupledOptimizer` is given beside what it has itself.
    """
    optimizer = keras.optimizers.get(optimizer)
    if not isinstance(optimizer, DecoupledOptimizer):
        if discriminator_optimizer is None:
            discriminator_optimizer = keras.optimizers.Adam(_RATE, epsilon=_EPSILON)
        both = {
            "model": optimizer,
            "discriminator": keras.optimizers.get(discriminator_optimizer),
        }
        return DecoupledOptimizer(both, _clip_norms(model))
    clips_otherwise = (
        model.given_clip_norm is not None and optimizer.clip_norms != _clip_norms(model)
    )
    if discriminator_optimizer is not None or clips_otherwise:
        raise ValueError(
            f"{type(model).__name__}: a DecoupledOptimizer has the discriminator's "
            "optimiser and `clip_norms` itself; leave `discriminator_optimizer` and "
            "the model's `clip_norm` out."
        )
    return optimizer


def _clip_norms(model: Any) -> dict[str, float]:
    """Returns what the gradients of each part are clipped to."""
    given = model.given_clip_norm
    if given is not None:
        return {"model": given, "discriminator": given}
    inner = model.model
    norm = getattr(inner, "total_clip_norm", None)
    norms = {"model": norm, "discriminator": _CLIP_NORM}
    if norm is None and getattr(inner, "clip_norm", None) is None:
        # As published; a model that clips its terms apart is left to do so.
        norms["model"] = _CLIP_NORM
    return {part: value for part, value in norms.items() if value is not None}
