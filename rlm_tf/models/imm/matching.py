"""What a wrapper asks of contexts, and what they answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from rlm_tf.models.language.interface import LanguageModelInterface
from rlm_tf.objective_model.term import LossAndGradient
from rlm_tf.restricted.restricted_model import RestrictedModel


class Matching(NamedTuple):
    """Which models are matched and how; the same in every step.

    Attributes:
        view: Of the language model.
        restricted_models: One induced model is matched to each.
        vocabulary_size: V.
        every: See `InducedModelMatching`.
        gradient: See `InducedModelMatching`.
        variant: See `InducedModelMatching`.
    """

    view: LanguageModelInterface
    restricted_models: Sequence[RestrictedModel]
    vocabulary_size: int
    every: int
    gradient: str
    variant: str


class Window(NamedTuple):
    """One batch of training.

    Attributes:
        inputs: Tokens int `[B, T]`, or `(tokens, start)`.
        targets: int `[B, T]`.
        sample_weight: `[B, T]`, or None for ones.
        step: int64, the optimiser's steps so far.
        active: bool, False until a start rule lets IMM begin.
    """

    inputs: Any
    targets: tf.Tensor
    sample_weight: tf.Tensor | None
    step: tf.Tensor
    active: tf.Tensor


class Induced(NamedTuple):
    """The induced model of one restricted model in one batch.

    Attributes:
        loss: `[N]`, nats, of each position, or of each group of positions; None with
            `loss_and_gradient`.
        weights: `[N]`, what each counts.
        counts: int32 `[M]`, how many predictions stand behind the induced model of each
            position with a whole short context and a sample weight above 0.
        least: Positions with fewer do not count.
        loss_and_gradient: See `Term`.
    """

    loss: tf.Tensor | None
    weights: tf.Tensor
    counts: tf.Tensor
    least: int | tf.Tensor
    loss_and_gradient: LossAndGradient | None = None


class Matched(NamedTuple):
    """What contexts give of one batch.

    Attributes:
        nll: `[B, T]`, nats, of the main pass.
        outputs: Of the main pass, see `LanguageModelInterface`.
        induced: One for each restricted model.
    """

    nll: tf.Tensor
    outputs: tf.Tensor
    induced: list[Induced]


def has_all_samples(matching: Matching, window: Window) -> tf.Tensor:
    """Returns bool scalar: whether the k-sample term is computed at this step."""
    return tf.equal(window.step % matching.every, 0)
