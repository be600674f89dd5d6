"""What each arm trains with, and the trials that its own settings are chosen by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from experiments.kit.ranges import Range, Space

Values = dict[str, Any]


class Arm(NamedTuple):
    """An arm.

    Attributes:
        trials: Its own settings, each tried once beside those of the arm that it
            builds on; none: it has none.
        base: The arm whose settings it shares; its own name: none.
        architecture: lstm, mogrifier or transformer.
        orders: Of the n-grams that are matched.
        contexts: Of IMM: batch, bank, or own (Eq. 16, each position alone).
        falling: Whether lambda falls to 0 in a line.
        noising: Whether words of the text are replaced.
        counted: Whether the n-grams count all of the training text.
    """

    trials: Sequence[Values] = ()
    base: str = "none"
    architecture: str = "lstm"
    orders: tuple[int, ...] = ()
    contexts: str = "batch"
    falling: bool = False
    noising: bool = False
    counted: bool = False


def _each(name: str, *values: float) -> list[Values]:
    return [{name: value} for value in values]


_LAMBDAS = _each("coefficient", 0.1, 0.2, 0.5, 1.0)
# The causal Transformer; its dropout is one rate, and Adam's first moment is usual.
# `warmup` steps, where there are some, have rates that rise in a line.
_TRANSFORMER: list[Values] = [
    {"learning_rate": 1e-3, "dropout": 0.2, "warmup": 400},
    {"learning_rate": 5e-4, "dropout": 0.2, "warmup": 400},
    {"learning_rate": 1e-3, "dropout": 0.4, "warmup": 400},
    {"learning_rate": 2e-3, "dropout": 0.4},
]
_OF_SOME_TIME: Mapping[str, Arm] = {
    "none": Arm(),
    # For about as much time as the mean of three seeds takes.
    "none-wider": Arm(),
    # As `rlm_tf train` has it for more text.
    "none-lighter": Arm(),
    "noising": Arm(_each("gamma0", 0.1, 0.2, 0.4, 0.6), noising=True),
    "imm-2": Arm(_LAMBDAS, orders=(2,)),
    "imm-3": Arm(_LAMBDAS, orders=(3,)),
    "imm-5": Arm(_LAMBDAS, orders=(5,)),
    "imm-2345": Arm(_LAMBDAS, orders=(2, 3, 4, 5)),
    "imm-bank": Arm(
        _each("coefficient", 0.2, 0.5, 1.0, 0.1), orders=(2,), contexts="bank"
    ),
    "imm-falling": Arm(
        _each("coefficient", 0.5, 1.0, 2.0, 0.2), orders=(2,), falling=True
    ),
    "noising-imm": Arm(
        [
            {"gamma0": gamma, "coefficient": coefficient}
            for gamma in (0.1, 0.2)
            for coefficient in (0.1, 0.2)
        ],
        orders=(2,),
        noising=True,
    ),
    "distilled-5": Arm(_LAMBDAS, orders=(5,), contexts="own"),
    "mogrifier": Arm(
        [
            {"learning_rate": rate, "state_dropout": dropout}
            for rate in (4e-3, 7e-3)
            for dropout in (0.2, 0.4)
        ],
        architecture="mogrifier",
    ),
    "transformer": Arm(_TRANSFORMER, base="transformer", architecture="transformer"),
    "transformer-imm": Arm(
        _LAMBDAS, base="transformer", architecture="transformer", orders=(2,)
    ),
    # N-grams of text that may be counted and not trained on.
    "counted-imm-2": Arm(_LAMBDAS, orders=(2,), counted=True),
    "counted-imm-5": Arm(_LAMBDAS, orders=(5,), counted=True),
    "counted-bank-2": Arm(
        _each("coefficient", 0.2, 0.5, 1.0, 2.0),
        orders=(2,),
        contexts="bank",
        counted=True,
    ),
}
LONGER, _PASSES = "-longer", 60
# Arms that are also trained for as many passes as three seeds of them, and trials: who
# reads the text more often may need more noise.
_TRAINED_LONGER: Mapping[str, list[Values]] = {
    "none": [],
    "noising": [{"epochs": _PASSES, "gamma0": own} for own in (0.1, 0.2, 0.3, 0.4)],
    "imm-2345": [],
    "mogrifier": [],
}
ARMS: Mapping[str, Arm] = {
    **_OF_SOME_TIME,
    **{
        arm + LONGER: _OF_SOME_TIME[arm]._replace(trials=trials, base=arm)
        for arm, trials in _TRAINED_LONGER.items()
    },
}
# Zaremba et al. (2014) to the end, and the medium one with IMM or with noise.
PUBLISHED = (
    "zaremba-small",
    "zaremba-medium",
    "zaremba-medium-imm",
    "zaremba-medium-noising",
)
PEERS = ("kneser-ney-2", "kneser-ney-5")
ENSEMBLE = "ensemble-"

# What `none` is tried with before the first trial of the search, the first of which it
# is: 2 x 200, tied, as a single run had it that the study was asked for.
START: Values = {
    "input_dropout": 0.5,
    "layer_dropout": 0.3,
    "state_dropout": 0.3,
    "output_dropout": 0.6,
    "learning_rate": 4e-3,
    "decay": 1e-4,
    "decoupled": 0,
}
# `decay` is the penalty l2 in the scale of the summed-over-time loss, or, decoupled,
# a hundred times as large, of AdamW.
SPACE: Space = {
    "input_dropout": Range(0.2, 0.8),
    "layer_dropout": Range(0.0, 0.7),
    "state_dropout": Range(0.0, 0.6),
    "output_dropout": Range(0.3, 0.8),
    "learning_rate": Range(1.5e-3, 8e-3, log=True),
    "decay": Range(1e-5, 1e-2, log=True),
    "decoupled": Range(0, 1, integer=True),
}
DECOUPLED_SCALE = 1e2
# Random trials behind the first, before the Gaussian process chooses.
INITIAL = 4

# The best trials on validation text, mixed with Kneser-Ney of order 5, of each arm;
# those of an arm stand above those of the arm that it builds on.
CHOSEN: Mapping[str, Values] = {
    # Its seventh trial, in three digits.
    "none": {
        "input_dropout": 0.329,
        "layer_dropout": 0.333,
        "state_dropout": 0.301,
        "output_dropout": 0.689,
        "learning_rate": 7.29e-3,
        "decay": 3.12e-4,
        "decoupled": 0,
    },
    # In place of the passes and the width of all others.
    **{arm + LONGER: {"epochs": _PASSES} for arm in _TRAINED_LONGER},
    "none-wider": {"width": 400},
    "none-lighter": {
        "input_dropout": 0.3,
        "layer_dropout": 0.2,
        "state_dropout": 0.2,
        "output_dropout": 0.4,
        "learning_rate": 3e-3,
        "decay": 0.0,
    },
    "noising": {"gamma0": 0.1},
    "imm-2": {"coefficient": 0.1},
    "imm-3": {"coefficient": 0.1},
    "imm-5": {"coefficient": 0.1},
    "imm-2345": {"coefficient": 0.1},
    "imm-bank": {"coefficient": 0.5},
    "imm-falling": {"coefficient": 1.0},
    "counted-imm-2": {"coefficient": 0.5},
    "noising-imm": {"gamma0": 0.1, "coefficient": 0.1},
    "distilled-5": {"coefficient": 0.1},
    "mogrifier": {"learning_rate": 7e-3, "state_dropout": 0.4},
    "transformer": {"learning_rate": 2e-3, "dropout": 0.4},
}


def chosen(name: str) -> Values:
    """Returns the settings of an arm: those of its base, and its own.

    Raises:
        ValueError: If none of its trials was chosen yet.
    """
    if name not in CHOSEN:
        raise ValueError(
            f"arm {name} has no settings yet: choose them by --preset=trials "
            f"--arms={name} and enter the best in arms.CHOSEN."
        )
    arm, own = ARMS[name], CHOSEN[name]
    return dict(own) if name == arm.base else {**chosen(arm.base), **own}
