"""The numbers behind Proposition 5.1, and the bias of few samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tqdm

from experiments.imm_consistency.config import ConsistencyConfig
from experiments.imm_consistency.source import ExactSource
from rlm_tf.objectives.imm import induced_cross_entropy

# What the facts of the counterexample are, in nats; the paper prints -1.1 for g.
PUBLISHED_G = -1.1


def proposition(config: ConsistencyConfig) -> dict[str, Any]:
    """Returns the counterexample's numbers, exact and reached by gradient descent."""
    source = ExactSource.proposition_5_1()
    uniform = np.full_like(source.probs, 0.5)
    rows = []
    for coefficient in (0.2, 1.0):
        noising = source.minimise(
            "noising", coefficient, config.steps, config.learning_rate
        )
        induced = source.minimise(
            "induced", coefficient, config.steps, config.learning_rate
        )
        exact = source.noising_minimiser(coefficient)
        distance = source.kl_divergence(exact)
        rows.append(
            {
                "coefficient": coefficient,
                "noising_minimiser": exact[..., 0].tolist(),
                "kl_of_noising_minimiser": distance,
                "f_plus_lambda_g": distance + coefficient * source.g(exact),
                "descent_to_noising_minimiser": float(np.abs(noising - exact).max()),
                "kl_of_imm_by_descent": source.kl_divergence(induced),
            }
        )
    induced_at_uniform = float(source.induced(tf.constant(np.log(uniform))))
    entropy = -float(
        np.sum(source.short * np.sum(source.restricted * np.log(source.restricted), 1))
    )
    return {
        "g_of_uniform": source.g(uniform),
        "restricted": source.restricted.tolist(),
        "imm_risk_of_uniform": induced_at_uniform - entropy,
        "rows": rows,
    }


def curve(config: ConsistencyConfig) -> dict[str, Any]:
    """Returns KL(P || Q*) against lambda, for noising and IMM, of two sources."""
    sources = {
        "Proposition 5.1": ExactSource.proposition_5_1(),
        "random trigram": ExactSource.random_trigram(seed=config.seed),
    }
    cells = []
    for name, source in sources.items():
        for coefficient in tqdm.tqdm(config.coefficients, desc=name, disable=None):
            found = source.minimise(
                "induced", coefficient, config.steps, config.learning_rate
            )
            exact = source.noising_minimiser(coefficient)
            cells.append(
                {
                    "source": name,
                    "coefficient": coefficient,
                    "noising": source.kl_divergence(exact),
                    "imm": source.kl_divergence(found),
                }
            )
        # Noising's limit is the restricted model itself.
        limit = np.broadcast_to(source.restricted[:, np.newaxis], source.probs.shape)
        distance = source.kl_divergence(limit)
        cells.append(
            {"source": name, "coefficient": None, "noising": distance, "imm": None}
        )
    return {"cells": cells}


def bias(config: ConsistencyConfig) -> dict[str, Any]:
    """Returns the bias of the k-sample IMM loss at the truth, measured and predicted.

    `E[-sum_y P_bar(y) log mean_k P(y | sh, x_i)] - H(P_bar)`, mean over short contexts,
    is not negative (Jensen). Its leading term is `c / k`, with
    `c = sum_y P_bar(y) Var P(y | sh, X) / (2 P_bar(y)^2)`.
    """
    source = ExactSource.random_trigram(num_words=8, seed=config.seed)
    rng = np.random.default_rng(config.seed)
    posterior = source.pi / source.short[:, np.newaxis]
    deviation = (source.probs - source.restricted[:, np.newaxis]) ** 2
    variance = np.einsum("se,sev->sv", posterior, deviation)
    per_context = np.sum(variance / source.restricted, axis=1) / 2
    leading = float(source.short @ per_context)
    entropy = -np.sum(source.restricted * np.log(source.restricted), axis=1)
    cells = []
    for k in tqdm.tqdm(config.samples, unit="k", disable=None):
        total = np.zeros(2)
        for short, weights in enumerate(posterior):
            # How often each extended context was drawn is all that matters.
            counts = rng.multinomial(k, weights, size=config.draws)
            with np.errstate(divide="ignore"):
                log_weights = np.log(counts.T)
            log_probs = np.log(source.probs[short])[:, np.newaxis]
            shape = (len(weights), config.draws, log_probs.shape[-1])
            losses = induced_cross_entropy(
                np.broadcast_to(source.restricted[short], shape[1:]),
                np.broadcast_to(log_probs, shape),
                log_weights,
            ).loss.numpy()
            share = source.short[short]
            total += [
                share * (losses.mean() - entropy[short]),
                share**2 * losses.var(ddof=1) / config.draws,
            ]
        cells.append(
            {
                "k": k,
                "bias": float(total[0]),
                "standard_error": float(np.sqrt(total[1])),
                "predicted": leading / k,
            }
        )
    return {"cells": cells, "leading": leading}
