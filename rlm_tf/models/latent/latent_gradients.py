"""What samples of latents say, and the gradient estimates that are made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from rlm_tf.layers.latent.latents import Latents
from rlm_tf.numerics import cast_like
from rlm_tf.objectives import monte_carlo
from rlm_tf.objectives.elbo import elbo, elbo_weights
from rlm_tf.objectives.gradient_estimators import (
    SCORE_FUNCTION,
    Cotangents,
    Estimator,
    cotangents,
)
from rlm_tf.objectives.monte_carlo_samples import checked_samples
from rlm_tf.objectives.monte_carlo_terms import Objective
from rlm_tf.typing import Gradient

Parameters = dict[str, tf.Tensor]


class LatentSamples(NamedTuple):
    """Samples of a batch and what the model says of them.

    Attributes:
        latents: `[K, B, ...]`.
        log_p_x_given_z: `[K, B]`, nats.
        log_p_z: `[K, B]`.
        log_q_z: `[K, B]`.
    """

    latents: tf.Tensor
    log_p_x_given_z: tf.Tensor
    log_p_z: tf.Tensor
    log_q_z: tf.Tensor


class SampledModel(Protocol):
    """What estimates ask of a model; see `MonteCarloVAE`, which is one."""

    latents: Latents
    objective: Objective
    estimator: Estimator | str

    @property
    def most_samples(self) -> int: ...
    def objective_options(self) -> dict[str, Any]: ...
    def elbo_options(self) -> dict[str, Any]: ...
    def current_baseline(self) -> Any: ...
    def __call__(self, x: Any, training: bool) -> Parameters: ...
    def draw(self, parameters: Parameters, num_samples: int) -> tf.Tensor: ...
    def decode(self, z: tf.Tensor, x: Any, training: bool) -> tf.Tensor: ...
    def analytic_kl(self, parameters: Parameters) -> tf.Tensor: ...


def sample_cotangents(
    model: SampledModel, samples: LatentSamples, kl: tf.Tensor | None
) -> Cotangents:
    """Returns the objective and the factors of its gradient estimate.

    Args:
        model: Whose objective and estimator.
        samples: Of a batch.
        kl: KL(q(z|x) || p(z)) `[B]`, with the estimator `elbo`.
    """
    if kl is None:
        return cotangents(
            *samples[1:],
            objective=model.objective,
            estimator=model.estimator,  # type: ignore[arg-type]
            baseline=model.current_baseline(),
            **model.objective_options(),
        )
    loss, weights = elbo(samples.log_p_x_given_z, kl, **model.elbo_options())
    factor = cast_like(weights.likelihood / model.most_samples, loss)
    factors = factor * tf.ones_like(samples.log_p_z)
    checked = checked_samples("MonteCarloVAE", *samples[1:])
    extra = monte_carlo.extra_of(checked)._replace(representational_kl=kl)
    zeros = tf.zeros_like(factors)
    return Cotangents(factors, zeros, factors, zeros, zeros, None, extra, -loss)


def sample_gradients(
    model: SampledModel, x: Any, variables: Sequence[Any], scale: tf.Tensor
) -> tuple[Cotangents, list[Gradient]]:
    """Draws samples of a batch and estimates the gradient.

    The encoder runs once and the decoder once forward; the decoder runs backward once,
    or, where z has other factors than the decoder's parameters (DReG), twice.

    Args:
        model: The model.
        x: A batch.
        variables: By which the gradient is.
        scale: `[B]`.

    Returns:
        What the samples gave, and the estimate of the gradient of minus
        `sum(scale * objective)`, one a variable.
    """
    # Where the way to z has factors of its own, z is cut off behind the decoder.
    backward_twice = model.estimator == "dreg"
    cut = backward_twice or model.estimator in SCORE_FUNCTION
    analytic = model.estimator == "elbo"
    with tf.GradientTape(persistent=backward_twice) as tape:
        parameters = model(x, training=True)
        drawn = model.draw(parameters, model.most_samples)
        fixed = tf.stop_gradient(drawn)
        tape.watch(fixed)
        z = fixed if cut else drawn
        log_likelihood = model.decode(z, x, training=True)
        log_prior = model.latents.prior().log_prob(z)
        score = model.latents.posterior(parameters).log_prob(fixed)
        path = score
        if model.estimator not in SCORE_FUNCTION:
            held = tf.nest.map_structure(tf.stop_gradient, parameters)
            path = model.latents.posterior(held).log_prob(z)
        kl = model.analytic_kl(parameters) if analytic else None
    samples = LatentSamples(z, log_likelihood, log_prior, path)
    found = sample_cotangents(model, samples, kl)
    upstream = -tf.cast(scale, found.objective.dtype)
    ways = [
        (log_likelihood, found.log_p_x_given_z),
        (log_prior, found.log_p_z),
        (score, found.score),
    ]
    if analytic:
        weight = elbo_weights(**model.elbo_options()).divergence
        ways.append((kl, cast_like(-weight, kl) * tf.ones_like(kl)))
    if not cut:
        ways.append((path, found.path_log_q_z))
    elif found.path_log_q_z is not None:
        to_z = _gradient(
            tape,
            [
                (log_likelihood, found.path_log_p_x_given_z),
                (log_prior, found.path_log_p_z),
                (path, found.path_log_q_z),
            ],
            fixed,
            upstream,
        )
        return found, _gradient(tape, ways, variables, upstream, (drawn, to_z))
    return found, _gradient(tape, ways, variables, upstream)


def _gradient(
    tape: tf.GradientTape,
    ways: list[tuple[tf.Tensor, tf.Tensor | None]],
    sources: Any,
    upstream: tf.Tensor,
    more: tuple[tf.Tensor, tf.Tensor] | None = None,
) -> Any:
    """Returns the gradient of the sum of targets times factors times `upstream`."""
    # What rows without weight say may be no number.
    used = [
        (target, tf.math.multiply_no_nan(factor, upstream))
        for target, factor in ways
        if factor is not None
    ]
    if more is not None:
        used.append(more)
    targets, factors = zip(*used, strict=True)
    return tape.gradient(list(targets), sources, output_gradients=list(factors))
