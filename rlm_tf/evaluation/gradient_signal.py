"""How much of a gradient estimate is signal, and how much noise."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.models.latent_gradients import sample_gradients
from rlm_tf.models.monte_carlo_vae import MonteCarloVAE
from rlm_tf.models.term import Gradient


class GradientSignal(NamedTuple):
    """Of the estimates of one gradient, all parameters of a group together.

    Attributes:
        signal: The norm of the expected gradient; the noise of the mean over repeats is
            subtracted from its square, and what falls below zero is zero.
        noise: Square root of the summed variances of one estimate's entries.
        ratio: Signal over noise; infinite without noise, nan without either.
    """

    signal: float
    noise: float
    ratio: float


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
        return [_joined(list(islice(rest, len(group)))) for group in groups.values()]

    mean = [np.zeros(0)] * len(groups)
    squares = [np.zeros(0)] * len(groups)
    for repeat in range(num_repeats):
        for number, drawn in enumerate(draw()):
            values = drawn.numpy().astype(np.float64)
            if not repeat:
                mean[number], squares[number] = values, np.zeros_like(values)
                continue
            news = values - mean[number]
            mean[number] += news / (repeat + 1)
            squares[number] += news * (values - mean[number])
    return {
        name: _signal(mean[number], squares[number], num_repeats)
        for number, name in enumerate(groups)
    }


def _joined(gradients: list[tuple[tf.Variable, Gradient]]) -> tf.Tensor:
    """Returns the gradients of a group as one vector."""
    parts = [
        tf.zeros(tf.size(variable))
        if gradient is None
        else tf.reshape(tf.cast(tf.convert_to_tensor(gradient), tf.float32), [-1])
        for variable, gradient in gradients
    ]
    return tf.concat(parts, axis=0)


def _signal(mean: np.ndarray, squares: np.ndarray, repeats: int) -> GradientSignal:
    variance = float(squares.sum()) / (repeats - 1)
    signal = math.sqrt(max(float(mean @ mean) - variance / repeats, 0.0))
    noise = math.sqrt(variance)
    if noise:
        return GradientSignal(signal, noise, signal / noise)
    return GradientSignal(signal, noise, math.inf if signal else math.nan)


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
