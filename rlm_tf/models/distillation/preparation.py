"""Trains what strategies of distillation learn from a teacher alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.distillation import TaughtStrategy
from rlm_tf.training.resumable_batches import ResumableBatches

# What one pass is, or what is of another epoch in each.
Batches: TypeAlias = Iterable[Any] | ResumableBatches
# The teacher's features of a batch, and those of its views, by strategy.
Features = Callable[[Any], Mapping[str, tuple[tf.Tensor, tf.Tensor | None]]]


def prepare(
    name: str,
    strategies: Mapping[str, TaughtStrategy],
    features: Features,
    batches: Batches,
    epochs: int | None,
    optimizer: keras.optimizers.Optimizer | None,
) -> dict[str, list[float]]:
    """Trains each strategy's part, and marks it as prepared; see `Distillation`.

    Args:
        name: Of the model; messages begin with it.
        strategies: By name.
        features: What the teacher gives of a batch.
        batches: What one pass is, or `ResumableBatches`.
        epochs: Passes; None: as each strategy says.
        optimizer: Of all parts, each by a copy; None: plain momentum.
    """
    if epochs is not None:
        check_integer(f"{name}.prepare", "epochs", epochs, 1)
    for own, strategy in strategies.items():
        if strategy.is_prepared:
            raise ValueError(f"{name}.prepare: {own} is prepared.")
    passes = {own: epochs or each.preparing_epochs for own, each in strategies.items()}
    if optimizer is None:
        optimizer = keras.optimizers.SGD(0.05, momentum=0.9)
    optimizers = {}
    for own, strategy in strategies.items():
        optimizers[own] = type(optimizer).from_config(optimizer.get_config())
        optimizers[own].build(strategy.teacher_part.variables)

    @tf.function(reduce_retracing=True)
    def step(batch: Any, going_on: tuple[str, ...]) -> dict[str, tf.Tensor]:
        found, losses = features(batch), {}
        for own in going_on:
            strategy, variables = (
                strategies[own],
                strategies[own].teacher_part.variables,
            )
            values = [variable.value for variable in variables]
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                # It is not trainable, so that fit() leaves it alone.
                tape.watch(values)
                losses[own] = strategy.teacher_loss(*found[own])
            gradients = tape.gradient(losses[own], values)
            optimizers[own].apply(gradients, variables)
        return losses

    history: dict[str, list[float]] = {own: [] for own in strategies}
    for epoch in range(max(passes.values())):
        going_on = tuple(own for own, most in passes.items() if epoch < most)
        own_pass: Iterable[Any]
        if isinstance(batches, ResumableBatches):
            batches.seek(epoch)
            own_pass = batches.dataset
        else:
            own_pass = batches
        losses = [step(batch, going_on) for batch in own_pass]
        if not losses:
            raise ValueError(f"{name}.prepare: `batches` are empty.")
        for own in going_on:
            history[own].append(float(np.mean([float(each[own]) for each in losses])))
    for strategy in strategies.values():
        strategy.prepared.assign(1.0)
    return history
