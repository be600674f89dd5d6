"""Penalties on what recurrent layers give: AR and TAR (Merity et al. 2017)."""

from __future__ import annotations

import tensorflow as tf

from rlm_tf.numerics import at_least_single
from rlm_tf.objective_model.term import TermLoss, TermSpec

PENALTIES = ("activation_penalty", "temporal_penalty")


class Activations(list[tf.Tensor]):
    """What every layer gives, `[T, B, H_l]` before dropout, as a list.

    Attributes:
        dropped: What the layers give together after dropout, `[T, B, H]`.
    """

    dropped: tf.Tensor


def penalty_specs(activation: float, temporal: float) -> list[TermSpec]:
    """Returns the terms of the coefficients that are not 0; training alone has them."""
    return [
        TermSpec(name, coefficient, evaluated=False)
        for name, coefficient in zip(PENALTIES, (activation, temporal), strict=True)
        if coefficient
    ]


def penalty_terms(
    activations: Activations, token_weights: tf.Tensor | None
) -> dict[str, TermLoss]:
    """Returns mean squares of the last layer's outputs, and of their changes.

        AR   mean_u (h_tu M_tu)^2            at every position
        TAR  mean_u (h_(t+1)u - h_tu)^2      at every position but the first

    Args:
        activations: Of a window of T steps.
        token_weights: `[B, T]`, or None.
    """
    dropped, last = (
        tf.transpose(at_least_single(values), [1, 0, 2])
        for values in (activations.dropped, activations[-1])
    )
    changes = last[:, 1:] - last[:, :-1]
    later = None if token_weights is None else token_weights[:, 1:]
    squares, of_changes = (
        tf.reduce_mean(tf.square(values), axis=-1) for values in (dropped, changes)
    )
    return dict(
        zip(
            PENALTIES,
            (TermLoss(squares, token_weights), TermLoss(of_changes, later)),
            strict=True,
        )
    )
