"""The lines of the study: base estimator, samples and objective, by what is varied."""

from __future__ import annotations

import dataclasses
from typing import Any

from experiments.vae.config import VaeConfig

# What is varied along a line: the weight of the mutual information, or alpha.
_LAMBDAS = (0.1, 0.2, 0.4, 0.8)
_ALPHAS = (1.1, 1.3, 1.8, 3.0)
_CONTINUOUS: dict[str, Any] = {"latents": "normal", "learning_rate": 0.003}
_DISCRETE: dict[str, Any] = {"latents": "categorical", "learning_rate": 0.0015}
_RENYI_ALPHA = 8.0


def _line(
    estimator: str, samples: int, objective: str, divergence: int = 0
) -> dict[str, Any]:
    """Returns the settings of a line."""
    discrete = estimator in ("reinforce", "vimco")
    return {
        **(_DISCRETE if discrete else _CONTINUOUS),
        "estimator": estimator,
        "num_samples": samples,
        "divergence_samples": divergence,
        "objective": objective,
        "alpha": _RENYI_ALPHA if objective == "renyi" else 1.0,
    }


def _both(name: str, *arguments: Any) -> dict[str, dict[str, Any]]:
    """Returns the KL and the Rényi line of an estimator."""
    estimator, samples, *rest = arguments
    return {
        f"{name}-{objective}": _line(estimator, samples, objective, *rest)
        for objective in ("kl", "renyi")
    }


LINES: dict[str, dict[str, Any]] = {
    "elbo-1-kl": _line("elbo", 1, "kl"),
    "iwae-1-kl": _line("reparameterised", 1, "kl"),
    **_both("iwae-16", "reparameterised", 16),
    **_both("iwae-64", "reparameterised", 64),
    "dreg-1-kl": _line("dreg", 1, "kl"),
    **_both("dreg-16", "dreg", 16),
    "dreg-16-power": _line("dreg", 16, "power"),
    **_both("dreg-16-1", "dreg", 16, 1),
    **_both("dreg-1-16", "dreg", 1, 16),
    "reinforce-1-kl": _line("reinforce", 1, "kl"),
    **_both("reinforce-16", "reinforce", 16),
    **_both("vimco-16", "vimco", 16),
    "vimco-16-power": _line("vimco", 16, "power"),
    **_both("vimco-64", "vimco", 64),
    **_both("vimco-16-1", "vimco", 16, 1),
    **_both("vimco-1-16", "vimco", 1, 16),
}


# Latents and categories of the VQ-VAE: rates from 2 nats to the entropy and more.
_CODES = ((2, 3), (4, 3), (5, 3), (6, 3), (7, 3), (3, 10))


def symbols(seeds: list[int]) -> dict[str, VaeConfig]:
    """1,000 symbols, 5,000 steps: four points a line, two of those with 64 samples."""
    return {**_points(VaeConfig(), seeds), **_quantised(VaeConfig(), seeds)}


def _quantised(base: VaeConfig, seeds: list[int]) -> dict[str, VaeConfig]:
    return {
        f"vq-vae-{latents}x{categories}-seed{seed}": dataclasses.replace(
            base,
            latents="quantised",
            num_latents=latents,
            num_categories=categories,
            learning_rate=0.0015,
            seed=seed,
        )
        for latents, categories in _CODES
        for seed in seeds
    }


def _points(base: VaeConfig, seeds: list[int]) -> dict[str, VaeConfig]:
    found = {}
    for name, line in LINES.items():
        field = "alpha" if line["objective"] == "power" else "lambda_"
        values: tuple[float, ...] = _ALPHAS if field == "alpha" else _LAMBDAS
        if line["num_samples"] == 64:
            values = values[1:3]
        for value in values:
            for seed in seeds:
                config = dataclasses.replace(
                    base, **{**line, field: value, "seed": seed}
                )
                found[f"{name}-{value:g}-seed{seed}"] = config
    return found


STUDIES = {"symbols": symbols}

PRESETS = {
    "default": VaeConfig(),
    # Seconds: does everything run?
    "smoke": VaeConfig(
        num_symbols=20,
        units=8,
        num_samples=4,
        batch_size=16,
        steps=20,
        evaluations=2,
        eval_samples=10,
    ),
    "small": VaeConfig(lambda_=0.2),
    # Section 5.7.1.
    "paper": VaeConfig(num_symbols=10_000, steps=40_000, evaluations=40, lambda_=0.25),
}
