"""Settings of a latent-variable model and its training."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection

from rlm_tf.command_line.flags import setting


@dataclasses.dataclass(frozen=True)
class VaeConfig:
    """One latent-variable model and its training."""

    corpus: str = setting("", "Corpus of sentences; empty: uniform symbols.")
    fraction: float = setting(1.0, "Share of the training text that is used.")
    most_tokens: int = setting(35, "Sentences are cut off after so many tokens.")
    num_symbols: int = setting(1000, "Symbols, without a corpus.")
    latents: str = setting("normal", "normal, categorical or quantised (VQ-VAE).")
    latent_size: int = setting(40, "Normal latents.")
    num_latents: int = setting(8, "Categorical or quantised latents.")
    num_categories: int = setting(10, "Categories, or codes, of each.")
    commitment: float = setting(0.25, "Of quantised latents: weight to stay near.")
    decay: float = setting(0.99, "Of their codes, moving averages.")
    units: int = setting(128, "Width of embeddings and layers.")
    objective: str = setting(
        "kl", "kl, renyi, power, iwae, alpha_iwae or u_hat (E ln p(x|z) alone)."
    )
    estimator: str = setting(
        "dreg", "elbo, reparameterised, stl, dreg, reinforce or vimco."
    )
    num_samples: int = setting(16, "Samples K of the evidence.")
    divergence_samples: int = setting(0, "Samples of the divergence; 0: the same.")
    grouping: str = setting(
        "difference", "Of kl and renyi with --divergence_samples: difference or terms."
    )
    lambda_: float = setting(0.0, "Of kl and renyi: weight of the mutual information.")
    alpha: float = setting(1.0, "Of the objectives renyi, power and alpha_iwae.")
    baseline: str = setting(
        "swap_in",
        "Of vimco: swap_in or leave_one_out. Of reinforce: moving_average; else none.",
    )
    trainable_prior: bool = setting(False, "Whether the prior is learnt.")
    batch_size: int = setting(256, "Examples of a batch.")
    steps: int = setting(5000, "Training steps.")
    epochs: int = setting(5, "Parts of a run, each with a line of metrics.jsonl.")
    eval_samples: int = setting(100, "Samples of an evaluation.")
    eval_sentences: int = setting(0, "Evaluate so many of each text; 0: all.")
    learning_rate: float = setting(0.002, "Of Adam without momentum.")
    input_dropout: float = setting(0.0, "Rate on the decoder's inputs.")
    state_dropout: float = setting(0.0, "Rate on its recurrent state.")
    output_dropout: float = setting(0.0, "Rate on its outputs.")
    shared_dropout: bool = setting(True, "Whether samples share masks of dropout.")
    l2: float = setting(0.0, "Penalty on the weights, halved square.")
    seed: int = setting(1, "Of everything drawn.")

    @property
    def counts(self) -> int | tuple[int, int]:
        """What `MonteCarloVAE` calls `num_samples`."""
        if self.divergence_samples in (0, self.num_samples):
            return self.num_samples
        return self.num_samples, self.divergence_samples


def check_config(config: VaeConfig) -> None:
    """Raises ValueError for settings that no run can have.

    What the model checks itself, it says when it is made.
    """
    if config.latents not in ("normal", "categorical", "quantised"):
        raise ValueError(
            "--latents must be normal, categorical or quantised, found "
            f"{config.latents}."
        )
    least = {
        "most_tokens": 2,
        "num_symbols": 2,
        "batch_size": 1,
        "steps": 1,
        "epochs": 1,
        "eval_samples": 1,
        "units": 1,
        "divergence_samples": 0,
        "eval_sentences": 0,
    }
    for name, smallest in least.items():
        if getattr(config, name) < smallest:
            raise ValueError(
                f"--{name} must be at least {smallest}, found {getattr(config, name)}."
            )
    if config.steps % config.epochs:
        raise ValueError(
            f"--steps must be a multiple of --epochs, {config.epochs}; found "
            f"{config.steps}."
        )
    if config.latents != "quantised":
        _check_objective(config)
    if not 0 < config.fraction <= 1:
        raise ValueError(f"--fraction must lie in (0, 1], found {config.fraction}.")
    if not 0 < config.learning_rate < math.inf:
        raise ValueError(
            "--learning_rate must be positive and finite, found "
            f"{config.learning_rate}."
        )
    if not 0 <= config.l2 < math.inf:
        raise ValueError(f"--l2 must be finite and not negative, found {config.l2}.")
    rates = ("input_dropout", "state_dropout", "output_dropout")
    for name in rates:
        if not 0 <= getattr(config, name) < 1:
            raise ValueError(
                f"--{name} must lie in [0, 1), found {getattr(config, name)}."
            )
    if not config.corpus and any(getattr(config, name) for name in rates):
        raise ValueError("dropout is for sentences: give --corpus.")
    _refuse_idle(config)


def _check_objective(config: VaeConfig) -> None:
    """Raises ValueError for settings that would change nothing."""
    if config.objective in ("renyi", "power", "alpha_iwae") and config.alpha == 1:
        raise ValueError(
            f"--objective={config.objective} needs --alpha; at 1 it is "
            f"{'kl' if config.objective == 'renyi' else 'iwae'}."
        )
    if config.grouping != "difference" and isinstance(config.counts, int):
        raise ValueError(
            f"--grouping={config.grouping} is for --divergence_samples that differ "
            "from --num_samples; leave it out."
        )


# What nothing but models of sentences has, and what only those of symbols have.
_OF_SENTENCES = ("fraction", "most_tokens", "eval_sentences", "shared_dropout")
_OF_SYMBOLS = ("num_symbols",)
# What a VQ-VAE does not have.
_ESTIMATES = (
    "objective",
    "estimator",
    "num_samples",
    "divergence_samples",
    "grouping",
    "lambda_",
    "alpha",
    "baseline",
    "trainable_prior",
)
_CODES = ("num_latents", "num_categories")
_MOVING = ("commitment", "decay")
_IDLE = {
    "normal": _CODES + _MOVING,
    "categorical": ("latent_size", *_MOVING),
    "quantised": ("latent_size", *_ESTIMATES),
}


def _idle(config: VaeConfig) -> dict[str, str]:
    """Returns the settings that a model has not, and where it says so."""
    found = dict.fromkeys(_IDLE[config.latents], f"with --latents={config.latents}")
    if config.corpus:
        return found | dict.fromkeys(_OF_SYMBOLS, "with --corpus")
    return found | dict.fromkeys(_OF_SENTENCES, "without --corpus")


def without_idle(config: VaeConfig, given: Collection[str] = ()) -> VaeConfig:
    """Returns a configuration without settings of a preset that its model has not.

    Args:
        config: Settings.
        given: Names of those that stay as they are, to be refused if they are idle.
    """
    if config.latents not in _IDLE:
        return config  # To be refused.
    default = VaeConfig()
    idle = {name: getattr(default, name) for name in _idle(config) if name not in given}
    return dataclasses.replace(config, **idle)


def _refuse_idle(config: VaeConfig) -> None:
    """Raises ValueError for settings that would change nothing."""
    default = VaeConfig()
    for name, why in _idle(config).items():
        if getattr(config, name) != getattr(default, name):
            raise ValueError(f"--{name} changes nothing {why}; leave it out.")
