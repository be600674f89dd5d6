"""The lists of runs behind the tables of the study's page."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

from experiments.imm_lm.config import RunConfig


class Run(NamedTuple):
    """A run and its name, unique in its study."""

    name: str
    config: RunConfig


# Two layers of 200 on a first part of Penn Treebank, the whole vocabulary.
PTB = RunConfig(corpus="ptb", fraction=1 / 8, epochs=25)

# The best of six trials each (study "tuning": an eighth, 10 epochs, seed 1), by
# validation perplexity; of two that differ by less than 0.2 % the cheaper. Arm
# `interpolation` takes its pick of the trials of `none`, by its own perplexity, and
# `imm-in-batch-count1` is the best variant of the study "ablation".
TUNED: dict[str, dict[str, Any]] = {
    "none": {"dropout": 0.4},
    "interpolation": {"dropout": 0.3},
    "noising-bigram-kn": {"dropout": 0.3, "gamma0": 0.2},
    "imm-in-batch": {"dropout": 0.4, "coefficient": 0.2, "bank_size": 7000},
    "imm-in-batch-count1": {
        "arm": "imm-in-batch",
        "dropout": 0.4,
        "coefficient": 0.2,
        "min_count": 1,
    },
    "imm-in-batch-all": {
        "arm": "imm-in-batch",
        "restricted_text": "all",
        "dropout": 0.3,
        "coefficient": 1.0,
        "bank_size": 20000,
    },
}

_TRIALS: dict[str, list[dict[str, Any]]] = {
    "none": [{"dropout": rate} for rate in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)],
    "noising-bigram-kn": [
        {"dropout": 0.3, "gamma0": 0.2},
        {"dropout": 0.4, "gamma0": 0.2},
        {"dropout": 0.5, "gamma0": 0.2},
        {"dropout": 0.3, "gamma0": 0.6},
        {"dropout": 0.4, "gamma0": 0.6},
        {"dropout": 0.3, "gamma0": 0.1},
    ],
    "imm-in-batch": [
        {"dropout": 0.4, "coefficient": 0.2},
        {"dropout": 0.4, "coefficient": 0.5},
        {"dropout": 0.5, "coefficient": 0.5},
        {"dropout": 0.4, "coefficient": 0.2, "bank_size": 7000},
        {"dropout": 0.3, "coefficient": 0.2, "bank_size": 7000},
        {
            "dropout": 0.4,
            "coefficient": 0.2,
            "bank_size": 7000,
            "pass_mode": "evaluation",
        },
    ],
    # Kneser-Ney of all the text is better than a language model of an eighth of it.
    "imm-in-batch-all": [
        {"restricted_text": "all", **trial}
        for trial in (
            {"dropout": 0.4, "coefficient": 0.2},
            {"dropout": 0.3, "coefficient": 1.0},
            {"dropout": 0.3, "coefficient": 1.0, "bank_size": 7000},
            {"dropout": 0.3, "coefficient": 3.0, "bank_size": 7000},
            {"dropout": 0.3, "coefficient": 1.0, "bank_size": 20000},
            {
                "dropout": 0.3,
                "coefficient": 1.0,
                "bank_size": 20000,
                "bank_target": 5,
                "min_count": 2,
            },
        )
    ],
}


def arm_config(base: RunConfig, arm: str, **changes: Any) -> RunConfig:
    """Returns the tuned settings of an arm of `TUNED`.

    Raises:
        ValueError: If the arm has not been tuned.
    """
    if "dropout" not in TUNED[arm]:
        raise ValueError(
            f"The arm {arm} is not tuned yet: run --study=tuning first, and enter the "
            "best trial's settings in TUNED of experiments/imm_lm/studies.py."
        )
    settings = {"arm": arm, **TUNED[arm], **changes}
    return dataclasses.replace(base, **settings)


def tuning(seeds: list[int]) -> list[Run]:
    """Six trials an arm; only the first seed is used."""
    return [
        Run(
            f"{arm}-trial{number}",
            dataclasses.replace(
                PTB, arm=arm.removesuffix("-all"), epochs=10, seed=seeds[0], **trial
            ),
        )
        for number in range(6)
        for arm, trials in _TRIALS.items()
        for trial in [trials[number]]
    ]


def main(seeds: list[int]) -> list[Run]:
    """An eighth of the text: every arm, every seed, 25 epochs."""
    runs = [arm_config(PTB, arm, seed=seed) for seed in seeds for arm in TUNED]
    return [Run(config.name, config) for config in runs]


def scarcity(seeds: list[int]) -> list[Run]:
    """None and IMM against the amount of text, one seed."""
    runs = [
        arm_config(PTB, arm, seed=seeds[0], fraction=1 / part)
        for part in (16, 4, 2)
        for arm in ("none", "imm-in-batch-count1", "imm-in-batch-all")
    ]
    return [Run(config.name, config) for config in runs]


def ablation(seeds: list[int]) -> list[Run]:
    """What each part of the in-batch contexts does, an eighth, 10 epochs.

    Every variant names what it changes in `reference`.
    """
    reference: dict[str, Any] = {
        "min_count": 5,
        "bank_size": 7000,
        "bank_target": None,
        "pass_mode": "training",
        "separate_clipping": False,
    }
    variants: dict[str, dict[str, Any]] = {
        "reference": {},
        "no-bank-count-1": {"min_count": 1, "bank_size": 0},
        "no-bank-count-1-lambda-0.5": {
            "min_count": 1,
            "bank_size": 0,
            "coefficient": 0.5,
        },
        "no-bank-count-2": {"min_count": 2, "bank_size": 0},
        "no-bank-count-5": {"bank_size": 0},
        "no-bank-count-10": {"min_count": 10, "bank_size": 0},
        # lambda times the share of positions in the term, which is a mean over these:
        # the weight that each has with `min_count` 1 and lambda 0.2.
        "no-bank-count-2-lambda-0.12": {
            "min_count": 2,
            "bank_size": 0,
            "coefficient": 0.12,
        },
        "no-bank-count-5-lambda-0.077": {"bank_size": 0, "coefficient": 0.077},
        "no-bank-count-10-lambda-0.061": {
            "min_count": 10,
            "bank_size": 0,
            "coefficient": 0.061,
        },
        "bank-count-2": {"min_count": 2},
        "bank-count-1-to-5": {"min_count": 1, "bank_target": 5},
        "bank-20000": {"bank_size": 20000},
        "bank-20000-to-20": {"bank_size": 20000, "bank_target": 20},
        "evaluation-pass": {"pass_mode": "evaluation"},
        "separate-clipping": {"separate_clipping": True},
        "evaluation-separate": {"pass_mode": "evaluation", "separate_clipping": True},
    }
    base = dataclasses.replace(PTB, epochs=10, seed=seeds[0])
    return [
        Run(name, arm_config(base, "imm-in-batch", **{**reference, **changes}))
        for name, changes in variants.items()
    ]


def sampler(seeds: list[int]) -> list[Run]:
    """The published sampler against the in-batch one, a sixteenth, 10 epochs.

    The sampler has the dropout and lambda of the in-batch arm, and the direct gradient,
    which is the faster one where memory allows. With k = 1 every step has one sample
    whatever `every` is.
    """
    base = dataclasses.replace(PTB, fraction=1 / 16, epochs=10, seed=seeds[0])
    runs = [
        Run(arm, arm_config(base, arm))
        for arm in ("none", "noising-bigram-kn", "imm-in-batch", "imm-in-batch-count1")
    ]
    # The sampler's dropout, for the question whether one sample is noising.
    like_sampler = arm_config(base, "noising-bigram-kn", dropout=0.4)
    runs.append(Run("noising-bigram-kn-dropout-0.4", like_sampler))
    shared = {
        key: value
        for key, value in TUNED["imm-in-batch"].items()
        if key in ("dropout", "coefficient")
    }
    for k, every in ((1, 1), (10, 5), (10, 1)):
        config = dataclasses.replace(
            base, arm="imm-sampled", k=k, every=every, gradient="direct", **shared
        )
        runs.append(Run(f"imm-sampled-k{k}-every{every}", config))
    return runs


def full(seeds: list[int]) -> list[Run]:
    """The whole text, 12 epochs, one seed."""
    base = dataclasses.replace(PTB, fraction=1.0, epochs=12, seed=seeds[0])
    runs = [arm_config(base, arm) for arm in ("none", "imm-in-batch-count1")]
    return [Run(config.name, config) for config in runs]


STUDIES: dict[str, Callable[[list[int]], list[Run]]] = {
    "tuning": tuning,
    "main": main,
    "scarcity": scarcity,
    "ablation": ablation,
    "sampler": sampler,
    "full": full,
}
