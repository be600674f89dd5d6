"""Settings of one training run of `experiments.mogrifier_lm`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection

from rlm_tf.command_line.flags import setting

CELLS = ("lstm", "rlstm", "mlstm", "gru", "elman")
CONNECTIONS = ("stacked", "skip", "residual")
OPTIMIZERS = ("adam", "radam", "sgd")


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """One run: a corpus, a model, an optimiser and a seed."""

    corpus: str = setting("python-docs", "Name of a corpus, or a text file.")
    fraction: float = setting(1.0, "First part of the training text that is used.")
    seed: int = setting(1, "Seed of initialisation, dropout and samples.")

    cell: str = setting("lstm", f"Kind of cell: {', '.join(CELLS)}.")
    rounds: int = setting(0, "Mogrifier rounds; 0: none.")
    rank: int = setting(0, "Rank of the Mogrifier's matrices; 0 or less: full.")
    condition: str = setting(
        "zigzag", "What the Mogrifier's gates see: zigzag, original or none."
    )
    gate_bias: bool = setting(True, "Whether the Mogrifier's gates have biases.")
    longest: float = setting(
        0.0, "T_max of the Chrono forget bias; 0: random around 1."
    )
    cap_input_gate: bool = setting(True, "Whether an LSTM's input gate is capped.")
    budget: int = setting(2_500_000, "Trainable parameters; the width is the largest.")
    width: int = setting(0, "Width of the layers; 0: by the budget.")
    embedding_ratio: float = setting(
        1.0, "Width of the embedding over that of the layers; 1 or more: equal."
    )
    num_layers: int = setting(2, "Number of recurrent layers.")
    connections: str = setting("skip", f"One of {', '.join(CONNECTIONS)}.")
    tied: bool = setting(True, "Whether the softmax uses the embedding matrix.")
    mixture_components: int = setting(1, "Number of softmaxes that are mixed.")

    input_dropout: float = setting(0.0, "Rate on embedded inputs, per step.")
    layer_dropout: float = setting(0.0, "Rate between (residual: after) layers.")
    state_dropout: float = setting(0.0, "Rate on the state, one mask a window.")
    output_dropout: float = setting(0.0, "Rate before the softmax.")
    dropout_samples: int = setting(1, "Dropout masks a token is predicted under.")
    reset_rate: float = setting(
        0.01, "Probability that a row's state is zeroed before a window."
    )

    batch_size: int = setting(20, "Rows of a batch.")
    window: int = setting(35, "Time steps of a window; losses are scaled by it.")
    epochs: int = setting(15, "Passes over the training text.")
    optimizer: str = setting(
        "adam", f"One of {', '.join(OPTIMIZERS)}; beta_1 = 0, beta_2 = 0.999."
    )
    learning_rate: float = setting(0.003, "Of the optimiser.")
    l2: float = setting(0.0, "Penalty, in the scale of the summed-over-time loss.")
    clip_norm: float = setting(10.0, "Clipping norm of the summed-over-time gradient.")
    recover: bool = setting(
        True, "On divergence: back to the best, learning rate times 0.9, go on."
    )
    averaging: str = setting(
        "2ta", "Average of weights: none, 2ta, or trigger (as in chapter 2)."
    )
    period: int = setting(0, "Steps between evaluations of averages; 0: an epoch.")
    trigger: int = setting(
        5, "Of `trigger`: evaluations without gain; by 80 % of all steps anyway."
    )
    patience: int = setting(3, "Of 2ta: evaluations after which averages stagnate.")
    stop_after: int = setting(
        0, "Epochs without a better average after which training stops; 0: never."
    )
    coefficient: float = setting(
        0.0, "lambda of induced model matching with a Kneser-Ney bigram; 0: without."
    )

    @property
    def cell_name(self) -> str:
        """The cell, and whether it is mogrified."""
        return f"mogrifier-{self.cell}" if self.rounds else self.cell

    @property
    def uses_chrono(self) -> bool:
        """Whether forget biases start as Chrono initialisation has them."""
        return self.longest > 0


def check_config(config: RunConfig) -> None:
    """Raises ValueError for settings that no run can have."""
    choices = {
        "cell": CELLS,
        "condition": ("zigzag", "original", "none"),
        "connections": CONNECTIONS,
        "optimizer": OPTIMIZERS,
        "averaging": ("none", "2ta", "trigger"),
    }
    for field, allowed in choices.items():
        if getattr(config, field) not in allowed:
            raise ValueError(
                f"--{field} must be one of {', '.join(allowed)}; found "
                f"{getattr(config, field)!r}."
            )
    if not 0 < config.fraction <= 1:
        raise ValueError(f"--fraction must lie in (0, 1], found {config.fraction}.")
    least = {
        "rounds": 0,
        "budget": 1,
        "width": 0,
        "num_layers": 1,
        "mixture_components": 1,
        "dropout_samples": 1,
        "batch_size": 1,
        "window": 1,
        "epochs": 1,
        "period": 0,
        "trigger": 1,
        "patience": 1,
        "stop_after": 0,
    }
    for field, smallest in least.items():
        if getattr(config, field) < smallest:
            raise ValueError(
                f"--{field} must be at least {smallest}, found "
                f"{getattr(config, field)}."
            )
    for field in ("learning_rate", "clip_norm", "embedding_ratio"):
        if not 0 < getattr(config, field) < math.inf:
            raise ValueError(
                f"--{field} must be positive and finite, found "
                f"{getattr(config, field)}."
            )
    for field in ("l2", "coefficient"):
        if not 0 <= getattr(config, field) < math.inf:
            raise ValueError(
                f"--{field} must be finite and not negative, found "
                f"{getattr(config, field)}."
            )
    rates = (
        "input_dropout",
        "layer_dropout",
        "state_dropout",
        "output_dropout",
        "reset_rate",
    )
    for field in rates:
        if not 0 <= getattr(config, field) < 1:
            raise ValueError(
                f"--{field} must lie in [0, 1), found {getattr(config, field)}."
            )
    _check_of_use(config)
    if config.uses_chrono and config.longest <= 2:
        raise ValueError(f"--longest must be 0 or above 2, found {config.longest}.")


def without_idle(config: RunConfig, given: Collection[str] = ()) -> RunConfig:
    """Returns settings of which those that the others make pointless are the defaults.

    So `--rounds=0` makes the baseline of a Mogrifier's preset, whose rank goes with it.

    Args:
        config: The settings.
        given: Names of those that the user has set, which stay for `check_config`.
    """
    default = RunConfig()
    idle = {name: getattr(default, name) for name in _idle(config) if name not in given}
    return dataclasses.replace(config, **idle)


def _idle(config: RunConfig) -> dict[str, str]:
    """Returns the settings that mean nothing beside the others, and why."""
    idle: dict[str, str] = {}
    if not config.rounds:
        idle |= dict.fromkeys(("rank", "condition", "gate_bias"), "--rounds")
    if config.cell not in ("lstm", "mlstm"):
        idle["cap_input_gate"] = f"--cell={config.cell}"
    if config.cell not in ("lstm", "mlstm", "rlstm"):
        idle["longest"] = f"--cell={config.cell}"
    return idle


def _check_of_use(config: RunConfig) -> None:
    """Raises ValueError for a setting that the others make pointless."""
    default = RunConfig()
    for name, cause in _idle(config).items():
        if getattr(config, name) != getattr(default, name):
            what = (
                f"needs {cause}" if cause == "--rounds" else f"means nothing to {cause}"
            )
            raise ValueError(f"--{name}={getattr(config, name)} {what}.")
    if config.condition == "none" and not config.gate_bias:
        raise ValueError("--condition=none leaves gates only the biases: --gate_bias.")
