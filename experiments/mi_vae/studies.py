"""The lines of the study: base estimator, samples and objective, by what is varied."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

from experiments.kit.vae_config import VaeConfig

# What is varied along a line: the weight of the mutual information, or alpha.
_LAMBDAS = (0.1, 0.2, 0.4, 0.6)
# Alpha gives the Rényi divergence of several samples a larger weight.
_RENYI_LAMBDAS = (0.05, 0.1, 0.2, 0.4)
_ALPHAS = (1.1, 1.3, 1.8, 3.0)
_CONTINUOUS: dict[str, Any] = {"latents": "normal", "learning_rate": 0.003}
_DISCRETE: dict[str, Any] = {"latents": "categorical", "learning_rate": 0.0015}
RENYI_ALPHA = 8.0


def line_settings(
    estimator: str,
    samples: int,
    objective: str,
    divergence: int = 0,
    grouping: str = "difference",
) -> dict[str, Any]:
    """Returns the settings of a line."""
    discrete = estimator in ("reinforce", "vimco")
    return {
        **(_DISCRETE if discrete else _CONTINUOUS),
        "estimator": estimator,
        "num_samples": samples,
        "divergence_samples": divergence,
        "grouping": grouping,
        "objective": objective,
        "alpha": RENYI_ALPHA if objective == "renyi" else 1.0,
    }


def _both(name: str, *arguments: Any) -> dict[str, dict[str, Any]]:
    """Returns the KL and the Rényi line of an estimator."""
    estimator, samples, *rest = arguments
    return {
        f"{name}-{objective}": line_settings(estimator, samples, objective, *rest)
        for objective in ("kl", "renyi")
    }


def _sixteen_and_one(estimator: str, *, difference: bool) -> dict[str, dict[str, Any]]:
    """Returns lines with 16 samples of the evidence and one of the divergence.

    Grouped as a difference, KL and Rényi objective are the same; with normal latents
    they have no maximum (see `rlm_tf.objectives.monte_carlo.kl_objective`).
    """
    name = f"{estimator}-16-1"
    lines = {
        f"{name}-{objective}-terms": line_settings(estimator, 16, objective, 1, "terms")
        for objective in ("kl", "renyi")
    }
    if difference:
        return {f"{name}-kl": line_settings(estimator, 16, "kl", 1), **lines}
    return lines


LINES: dict[str, dict[str, Any]] = {
    "elbo-1-kl": line_settings("elbo", 1, "kl"),
    "iwae-1-kl": line_settings("reparameterised", 1, "kl"),
    **_both("iwae-16", "reparameterised", 16),
    **_both("iwae-64", "reparameterised", 64),
    "dreg-1-kl": line_settings("dreg", 1, "kl"),
    **_both("dreg-16", "dreg", 16),
    "dreg-16-power": line_settings("dreg", 16, "power"),
    **_sixteen_and_one("dreg", difference=False),
    **_both("dreg-1-16", "dreg", 1, 16),
    "reinforce-1-kl": line_settings("reinforce", 1, "kl"),
    **_both("reinforce-16", "reinforce", 16),
    **_both("vimco-16", "vimco", 16),
    "vimco-16-power": line_settings("vimco", 16, "power"),
    **_both("vimco-64", "vimco", 64),
    **_sixteen_and_one("vimco", difference=True),
    **_both("vimco-1-16", "vimco", 1, 16),
}


# Latents and categories of the VQ-VAE: rates from 2 nats to the entropy and more.
_CODES = ((2, 3), (4, 3), (5, 3), (6, 3), (7, 3), (3, 10))


def symbols(seeds: list[int]) -> dict[str, VaeConfig]:
    """1,000 symbols, 5,000 steps: four points a line.

    Those with 64 samples and those that are grouped by terms have two.
    """
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
        if line["objective"] == "renyi" and line["divergence_samples"] != 1:
            values = _RENYI_LAMBDAS
        if line["num_samples"] == 64 or line["grouping"] == "terms":
            values = values[1:3]
        for value in values:
            for seed in seeds:
                config = dataclasses.replace(
                    base, **{**line, field: value, "seed": seed}
                )
                found[f"{name}-{value:g}-seed{seed}"] = config
    return found


def many_symbols(seeds: list[int]) -> dict[str, VaeConfig]:
    """10,000 symbols as published, 2,000 of the 40,000 steps: VIMCO-16."""
    base = VaeConfig(num_symbols=10_000, steps=2000)
    return {
        f"vimco-16-{objective}-seed{seed}": dataclasses.replace(
            base, **line_settings("vimco", 16, objective), lambda_=lambda_, seed=seed
        )
        for objective, lambda_ in (("kl", 0.15), ("renyi", 0.25))
        for seed in seeds
    }


# An eighth of the Penn Treebank.
_SENTENCES = VaeConfig(
    corpus="ptb",
    fraction=0.125,
    most_tokens=20,
    units=64,
    batch_size=32,
    steps=2400,
    eval_sentences=1000,
    learning_rate=0.003,
)
_RATES: dict[str, Any] = {
    "input_dropout": 0.3,
    "state_dropout": 0.2,
    "output_dropout": 0.4,
}
_SENTENCE_LAMBDAS = (0.0, 0.5, 0.8)


def sentences(seeds: list[int]) -> dict[str, VaeConfig]:
    """Sentences with four samples, in four ways; one sample gets four times the steps.

    Without dropout, with masks that samples share, with one for each, and with a
    penalty on the weights.
    """
    found = {}
    for estimator, samples in (
        ("dreg", 4),
        ("vimco", 4),
        ("dreg", 1),
        ("reinforce", 1),
    ):
        line = line_settings(estimator, samples, "kl")
        line["learning_rate"] = _SENTENCES.learning_rate
        if samples == 1:
            line |= {"steps": 4 * _SENTENCES.steps}
        ways: dict[str, dict[str, Any]] = {"fit": {}, "shared": _RATES}
        if samples > 1:
            ways["naive"] = {**_RATES, "shared_dropout": False}
            ways["l2"] = {"l2": 1e-4}
        for (way, own), lambda_, seed in itertools.product(
            ways.items(), _SENTENCE_LAMBDAS, seeds
        ):
            found[f"{estimator}-{samples}-{way}-{lambda_:g}-seed{seed}"] = (
                dataclasses.replace(
                    _SENTENCES, **{**line, **own}, lambda_=lambda_, seed=seed
                )
            )
    return found


def signal(seeds: list[int]) -> dict[str, VaeConfig]:
    """The two models whose gradients are looked at, trained halfway."""
    return {
        f"{name}-seed{seed}": dataclasses.replace(
            VaeConfig(steps=1000, lambda_=0.2),
            **line_settings(estimator, 16, "kl"),
            seed=seed,
        )
        for name, estimator in (("normal", "dreg"), ("categorical", "vimco"))
        for seed in seeds
    }


STUDIES = {
    "symbols": symbols,
    "many_symbols": many_symbols,
    "sentences": sentences,
    "signal": signal,
}

# Section 5.7.1, of 16 samples and the KL objective.
_PAPER = VaeConfig(num_symbols=10_000, steps=40_000, epochs=40)
# Section 5.7.2.
_PAPER_SENTENCES = VaeConfig(
    corpus="ptb",
    batch_size=64,
    steps=40_000,
    epochs=40,
    eval_samples=500,
)


def _published(name: str, base: VaeConfig) -> dict[str, VaeConfig]:
    """Returns the presets of DReG and VIMCO."""
    return {
        name: dataclasses.replace(
            base, **line_settings("dreg", 16, "kl"), lambda_=0.25
        ),
        f"{name}-vimco": dataclasses.replace(
            base, **line_settings("vimco", 16, "kl"), lambda_=0.15
        ),
    }


PRESETS = {
    "default": VaeConfig(),
    # Under a minute: does everything run?
    "smoke": VaeConfig(
        num_symbols=20,
        units=8,
        num_samples=4,
        batch_size=16,
        steps=20,
        epochs=2,
        eval_samples=10,
    ),
    "small": VaeConfig(lambda_=0.2),
    # Minutes: sentences of the embedded corpus that use their latents.
    "small-sentences": dataclasses.replace(
        _SENTENCES,
        corpus="python-docs",
        fraction=1.0,
        num_samples=4,
        lambda_=0.4,
        **_RATES,
    ),
    **_published("paper", _PAPER),
    **_published("paper-sentences", _PAPER_SENTENCES),
    **_published(
        "paper-sentences-256",
        dataclasses.replace(_PAPER_SENTENCES, units=256, steps=80_000),
    ),
}
