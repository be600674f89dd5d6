"""Strategies of distillation as terms of an objective."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from rlm_tf.distillation import Strategy
from rlm_tf.objective_model.term import Coefficient, TermLoss, check_coefficient
from rlm_tf.replicas import with_rows_of_all

# What a network gives, as a path.
OUTPUT = "output"
# Strategies that are what losses of keras.distillation are meant to be.
_OURS = {
    "LogitsDistillation": "KD(temperature)",
    "FeatureDistillation": "FitNet(teacher_layer_name, student_layer_name)",
}


def weighted_strategies(name: str, losses: Any) -> list[tuple[Strategy, Coefficient]]:
    """Returns strategies and their coefficients, checked."""
    given = list(losses) if isinstance(losses, list | tuple) else [losses]
    if not given:
        raise ValueError(f"{name}: `losses` must have one strategy at least.")
    pairs = []
    for each in given:
        pair = tuple(each) if isinstance(each, list | tuple) else (each, 1.0)
        if len(pair) != 2 or not isinstance(pair[0], Strategy):
            own = type(pair[0]).__name__ if pair else ""
            instead = f"; {_OURS[own]} is what {own} is here" if own in _OURS else ""
            raise ValueError(
                f"{name}: `losses` must hold strategies of rlm_tf.distillation, or "
                f"pairs (strategy, coefficient), found {each!r}{instead}."
            )
        check_coefficient(name, "losses", pair[1])
        pairs.append(pair)
    return pairs


def term_names(strategies: Sequence[Strategy]) -> list[str]:
    """Returns the names of terms: those of classes, in small letters, numbered."""
    found: list[str] = []
    for strategy in strategies:
        own = type(strategy).__name__
        own = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", own).lower()
        number = sum(re.sub(r"_\d+$", "", name) == own for name in found) + 1
        found.append(own if number == 1 else f"{own}_{number}")
    return found


def term_of(
    strategy: Strategy,
    pair: tuple[tf.Tensor, tf.Tensor],
    weights: tf.Tensor,
    **given: Any,
) -> TermLoss:
    """Returns the term of a strategy.

    Args:
        strategy: The strategy.
        pair: What teacher and student give, `[B, ...]`.
        weights: `[B]`.
        **given: What strategies may need besides, `[B, ...]`.
    """
    context = {name: given[name] for name in strategy.needs}

    def losses(pair: Any, context: Any) -> tf.Tensor:
        return strategy.losses_of(*pair, **context).loss

    if not strategy.across:
        return TermLoss(losses(pair, context), weights)
    rows = tf.shape(weights)[0]
    loss = with_rows_of_all(losses, rows, pair, context)
    # Of neighbours there is one less.
    return TermLoss(loss, weights[: tf.shape(loss)[0]])


def paths_of(strategy: Strategy) -> tuple[str, str]:
    """Returns where a strategy looks in teacher and student."""
    own = (strategy.teacher_layer_name, strategy.student_layer_name)
    return own[0] or OUTPUT, own[1] or OUTPUT


def free_shape(shape: Any) -> tuple[int | None, ...]:
    """Returns a shape whose first axis is free."""
    return (None, *(None if size is None else int(size) for size in tuple(shape)[1:]))
