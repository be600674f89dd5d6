"""How well a latent-variable model fits data, and how much its latents say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.models.latent.latent_gradients import LatentSamples
from rlm_tf.models.latent.monte_carlo_vae import MonteCarloVAE
from rlm_tf.models.latent.vector_quantized_vae import VectorQuantizedVAE
from rlm_tf.objectives.monte_carlo import iwae

_ACTIVE = 0.01


class LatentUsage(NamedTuple):
    """Means over examples, nats an example.

    Attributes:
        nll: Minus the evidence S of K samples, an upper bound on `-ln p(x)` in
            expectation.
        usage: Mean of U - S, the estimate of the mutual information of x and z: the
            rate. Zero: posterior collapse. It may exceed the entropy of x.
        distortion: Minus the mean of U, so that `nll = distortion + usage`.
        representational_kl: KL(q(z|x) || p(z)), computed exactly.
        active_units: Latents that q(z|x) uses, see `latent_usage`.
        effective_samples: Mean of `1 / sum_i w_i^2`, of K.
        num_examples: How many.
        num_tokens: Of all examples, if x is integer `[B, T]`, which is taken for
            sequences padded with -1; else the number of examples.
    """

    nll: float
    usage: float
    distortion: float
    representational_kl: float
    active_units: int
    effective_samples: float
    num_examples: int
    num_tokens: int

    def per_token(self) -> LatentUsage:
        """Returns the same with means over tokens instead of examples."""
        factor = self.num_examples / self.num_tokens
        names = ("nll", "usage", "distortion", "representational_kl")
        return self._replace(**{name: getattr(self, name) * factor for name in names})

    @property
    def perplexity(self) -> float:
        """Of a token."""
        return math.exp(min(self.per_token().nll, 709.0))


def latent_usage(
    model: MonteCarloVAE,
    batches: Iterable[Any],
    num_samples: int = 100,
    chunk: int = 20,
) -> LatentUsage:
    """Evaluates a model by importance sampling from q(z|x), without dropout.

    The fit is that of IWAE with K samples, and the usage the mean of U - S of the same
    samples (Melis 2023, section 5.7.1). Latents are active if q depends on x in them:
    normal ones if the variance over x of their mean exceeds 0.01 (Burda et al. 2015),
    categorical ones if the mutual information of latent and x under q does, in nats.

    Draws are those of evaluation, the same each time; training does not notice.

    Args:
        model: A built model.
        batches: As `fit` takes them, x or (x, y), without weights: examples of all
            batches count equally.
        num_samples: K.
        chunk: So many samples are decoded at once; memory grows with it.

    Raises:
        ValueError: If there is no example, a batch has weights, or a count is not
            positive.
    """
    check_integer("latent_usage", "num_samples", num_samples, 1)
    check_integer("latent_usage", "chunk", chunk, 1)
    sizes = [chunk] * (num_samples // chunk)
    if num_samples % chunk:
        sizes.append(num_samples % chunk)
    encode = tf.function(_encoded)
    score = tf.function(_scored)
    sums: list[np.ndarray] = []
    posteriors: list[dict[str, np.ndarray]] = []
    tokens = 0
    with model.evaluation_draws():
        for x in _batches("latent_usage", batches):
            parameters, kl = _in_one_graph(encode, model, x)
            parts = [_in_one_graph(score, model, x, parameters, size) for size in sizes]
            logs = [np.concatenate([p[i] for p in parts], axis=0) for i in range(3)]
            loss, extra = iwae(*[values.astype(np.float64) for values in logs])
            effective = 1 / tf.reduce_sum(tf.square(extra.weights), axis=0)
            sums.append(np.stack([loss, extra.kl_divergence, kl, effective]))
            posteriors.append({name: v.numpy() for name, v in parameters.items()})
            tokens += _num_tokens(x)
    if not sums:
        raise ValueError("latent_usage: expected at least one example, found none.")
    values = np.concatenate(sums, axis=1)
    nll, usage, kl, effective = values.mean(axis=1)
    return LatentUsage(
        float(nll),
        float(usage),
        float(nll - usage),
        float(kl),
        _active_units(posteriors),
        float(effective),
        values.shape[1],
        tokens,
    )


def quantised_usage(model: VectorQuantizedVAE, batches: Iterable[Any]) -> LatentUsage:
    """Evaluates a VQ-VAE, whose q(z|x) is certain.

    Its evidence is that of the one sample there is, and its usage the fixed rate
    `L ln C`, as in the published figure; latents are active as categorical ones are.

    Args:
        model: A built model.
        batches: As `latent_usage` takes them.

    Raises:
        ValueError: If there is no example, or a batch has weights.
    """
    score = tf.function(lambda x: model.bound(x), reduce_retracing=True)
    losses: list[np.ndarray] = []
    codes: list[np.ndarray] = []
    tokens = 0
    for x in _batches("quantised_usage", batches):
        loss, found = score(x)
        losses.append(loss.numpy())
        codes.append(found.codes.numpy())
        tokens += _num_tokens(x)
    if not losses:
        raise ValueError("quantised_usage: expected at least one example, found none.")
    nll = float(np.mean(np.concatenate(losses), dtype=np.float64))
    used = np.concatenate(codes)
    counts = [np.bincount(column) / len(used) for column in used.T]
    entropies = [-np.sum(p[p > 0] * np.log(p[p > 0])) for p in counts]
    active = int(np.sum(np.array(entropies) > _ACTIVE))
    rate = model.rate
    return LatentUsage(nll, rate, nll - rate, rate, active, 1.0, len(used), tokens)


def _batches(function: str, batches: Iterable[Any]) -> Iterator[Any]:
    """Yields x of batches as tensors, without those that are empty."""
    if tf.is_tensor(batches) or isinstance(batches, np.ndarray):
        raise ValueError(
            f"{function}: `batches` must be an iterable of batches, found one array of "
            f"shape {list(np.asarray(batches).shape)}; put it into a list."
        )
    for batch in batches:
        x, _, weights = keras.utils.unpack_x_y_sample_weight(batch)
        if weights is not None:
            raise ValueError(
                f"{function}: examples count equally; leave the weights of `batches` "
                "out."
            )
        x = tf.nest.map_structure(tf.convert_to_tensor, x)
        if tf.nest.flatten(x)[0].shape[0]:
            yield x


def _in_one_graph(function: Any, model: MonteCarloVAE, *arguments: Any) -> Any:
    """Calls a function whose graph takes batches and sentences of any length."""
    specs = tf.nest.map_structure(_spec, arguments)
    concrete = function.get_concrete_function(model, *specs)
    tensors = [value for value in tf.nest.flatten(arguments) if tf.is_tensor(value)]
    return concrete(*tensors)


def _spec(value: Any) -> Any:
    if not tf.is_tensor(value):
        return value
    free = value.shape.rank if value.dtype.is_integer else 1
    return tf.TensorSpec([None] * free + value.shape[free:].as_list(), value.dtype)


def _encoded(model: MonteCarloVAE, x: Any) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    parameters = model(x)
    return parameters, model.analytic_kl(parameters)


def _scored(
    model: MonteCarloVAE, x: Any, parameters: dict[str, tf.Tensor], count: int
) -> tuple[tf.Tensor, ...]:
    samples: LatentSamples = model.sample(x, count, parameters)
    return samples.log_p_x_given_z, samples.log_p_z, samples.log_q_z


def _num_tokens(x: Any) -> int:
    first = tf.nest.flatten(x)[0]
    if first.shape.rank == 2 and first.dtype.is_integer:
        return int(tf.math.count_nonzero(first >= 0))
    return int(first.shape[0])


def _active_units(posteriors: list[dict[str, np.ndarray]]) -> int:
    whole = {
        name: np.concatenate([p[name] for p in posteriors]) for name in posteriors[0]
    }
    if "mean" in whole:
        return int(np.sum(whole["mean"].var(axis=0) > _ACTIVE))
    log_probs = tf.nn.log_softmax(whole["logits"]).numpy().astype(np.float64)
    probs = np.exp(log_probs)
    marginal = probs.mean(axis=0)
    entropy = -np.sum(marginal * np.log(np.maximum(marginal, 1e-300)), axis=-1)
    conditional = -np.sum(probs * log_probs, axis=-1).mean(axis=0)
    return int(np.sum(entropy - conditional > _ACTIVE))
