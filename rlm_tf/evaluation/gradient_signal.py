"""How much of a gradient estimate is signal, and how much noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.models.latent.latent_gradients import sample_gradients
from rlm_tf.models.latent.monte_carlo_vae import MonteCarloVAE
from rlm_tf.typing import Gradient

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
        return [_joined(list(islice(rest, len(group)))) for group in groups.values()]

    blocks: dict[str, list[_Moments]] = {name: [] for name in groups}
    for repeats in np.array_split(np.arange(num_repeats), min(_BLOCKS, num_repeats)):
        for own in blocks.values():
            own.append(_Moments())
        for _ in repeats:
            for own, drawn in zip(blocks.values(), draw(), strict=True):
                own[-1].add(drawn.numpy().astype(np.float64))
    return {name: _signal(own) for name, own in blocks.items()}


class _Moments:
    """Mean and squared deviations from it of vectors, by Welford's method."""

    def __init__(self) -> None:
        self.count = 0
        self.mean: Any = 0.0
        self.squares = 0.0

    def add(self, vector: np.ndarray) -> None:
        """Counts a vector."""
        self.count += 1
        news = vector - self.mean
        self.mean = self.mean + news / self.count
        self.squares += float(news @ (vector - self.mean))

    def signal_and_noise(self) -> tuple[float, float]:
        """Returns the two norms; two vectors are needed."""
        variance = self.squares / (self.count - 1)
        square = float(self.mean @ self.mean) - variance / self.count
        return math.sqrt(max(square, 0.0)), math.sqrt(variance)


def _joint(parts: Sequence[_Moments]) -> _Moments:
    """Returns the moments of all vectors together."""
    whole = _Moments()
    for part in parts:
        count = whole.count + part.count
        news = part.mean - whole.mean
        share = part.count / count
        whole.mean = whole.mean + news * share
        between = float(np.sum(np.square(news))) if whole.count else 0.0
        whole.squares += part.squares + between * whole.count * share
        whole.count = count
    return whole


def _joined(gradients: list[tuple[tf.Variable, Gradient]]) -> tf.Tensor:
    """Returns the gradients of a group as one vector."""
    parts = [
        tf.zeros(tf.size(variable))
        if gradient is None
        else tf.reshape(tf.cast(tf.convert_to_tensor(gradient), tf.float32), [-1])
        for variable, gradient in gradients
    ]
    return tf.concat(parts, axis=0)


def _signal(blocks: list[_Moments]) -> GradientSignal:
    signal, noise = _joint(blocks).signal_and_noise()
    if not noise:
        return GradientSignal(signal, noise, math.inf if signal else math.nan, 0.0)
    return GradientSignal(signal, noise, signal / noise, _jackknife(blocks))


def _jackknife(blocks: list[_Moments]) -> float:
    """Returns the standard error of the ratio, from those without one block each."""
    if sum(block.count for block in blocks) < 3:
        return math.nan
    ratios = []
    for number in range(len(blocks)):
        rest = _joint(blocks[:number] + blocks[number + 1 :])
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
