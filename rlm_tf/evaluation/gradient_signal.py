"""How much of a gradient estimate is signal, and how much noise."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.evaluation.gradient_moments import (
    GradientMoments,
    joined,
    joint_moments,
)
from rlm_tf.models.latent.latent_gradients import sample_gradients
from rlm_tf.models.latent.monte_carlo_vae import MonteCarloVAE

# Of the jackknife: each keeps one vector of the size of the parameters.
_BLOCKS = 10


class GradientSignal(NamedTuple):
    """Of the estimates of one gradient, all parameters of a group together.

    Attributes:
        signal: The norm of the expected gradient; the noise of the mean over repeats is
            subtracted from its square, and what falls below zero is zero.
        noise: Square root of the summed variances of one estimate's entries.
        ratio: Signal over noise; infinite without noise, nan without either.
        ratio_error: Standard error of the ratio, by the jackknife over ten blocks of
            estimates (all of them, if there are fewer); nan with two estimates.
    """

    signal: float
    noise: float
    ratio: float
    ratio_error: float


def gradient_signal(
    model: MonteCarloVAE, x: Any, num_repeats: int = 100
) -> dict[str, GradientSignal]:
    """Draws the gradient estimate of one batch again and again.

    The batch stays the same: the noise is that of the latents' samples alone, what
    Rainforth et al. (2018) look at. Their ratio is a mean over parameters; this is one
    of norms, in which parameters without any gradient do not count.

    Draws come from the model's generator, which moves on.

    Args:
        model: A built model; its estimator, objective and K are used.
        x: A batch.
        num_repeats: Estimates, at least two.

    Returns:
        `proposal`: of the parameters of q(z|x); `model`: of p(x, z).

    Raises:
        ValueError: If `num_repeats` is less than two.
    """
    check_integer("gradient_signal", "num_repeats", num_repeats, 2)
    x = tf.nest.map_structure(tf.convert_to_tensor, x)
    groups = _groups(model)
    variables = [v.value for members in groups.values() for v in members]
    rows = tf.shape(tf.nest.flatten(x)[0])[0]
    scale = tf.fill([rows], 1.0 / tf.cast(rows, tf.float32))

    @tf.function
    def draw() -> list[tf.Tensor]:
        _, gradients = sample_gradients(model, x, variables, scale)
        rest = iter(zip(variables, gradients, strict=True))
        return [joined(list(islice(rest, len(group)))) for group in groups.values()]

    blocks: dict[str, list[GradientMoments]] = {name: [] for name in groups}
    for repeats in np.array_split(np.arange(num_repeats), min(_BLOCKS, num_repeats)):
        for own in blocks.values():
            own.append(GradientMoments())
        for _ in repeats:
            for own, drawn in zip(blocks.values(), draw(), strict=True):
                own[-1].add(drawn.numpy().astype(np.float64))
    return {name: _signal(own) for name, own in blocks.items()}


def _signal(blocks: list[GradientMoments]) -> GradientSignal:
    signal, noise = joint_moments(blocks).signal_and_noise()
    if not noise:
        return GradientSignal(signal, noise, math.inf if signal else math.nan, 0.0)
    return GradientSignal(signal, noise, signal / noise, _jackknife(blocks))


def _jackknife(blocks: list[GradientMoments]) -> float:
    """Returns the standard error of the ratio, from those without one block each."""
    if sum(block.count for block in blocks) < 3:
        return math.nan
    ratios = []
    for number in range(len(blocks)):
        rest = joint_moments(blocks[:number] + blocks[number + 1 :])
        signal, noise = rest.signal_and_noise()
        ratios.append(signal / noise if noise else math.nan)
    return float(np.std(ratios) * math.sqrt(len(blocks) - 1))


def _groups(model: MonteCarloVAE) -> dict[str, list[Any]]:
    prior = {id(weight) for weight in model.latents.prior_variables}
    latents = model.latents.trainable_variables
    return {
        "proposal": [
            *model.encoder.trainable_variables,
            *(weight for weight in latents if id(weight) not in prior),
        ],
        "model": [
            *model.decoder.trainable_variables,
            *(weight for weight in latents if id(weight) in prior),
        ],
    }
