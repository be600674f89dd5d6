"""Settings of `experiments.averaging`, and its presets."""

from __future__ import annotations

import dataclasses

from rlm_tf.command_line.flags import setting


@dataclasses.dataclass(frozen=True)
class AveragingConfig:
    """How large the studies are."""

    seed: int = setting(1, "Of all draws.")
    corpus: str = setting("python-docs", "Text of the language models.")
    fraction: float = setting(1.0, "First part of the training text that is used.")
    width: int = setting(190, "Width of the two LSTM layers.")
    epochs: int = setting(15, "Passes over the text.")
    learning_rate: float = setting(0.003, "Of rectified Adam without momentum.")
    evaluations: int = setting(2, "Evaluations an epoch, which give the period E.")
    loss_tokens: int = setting(10_000, "Tokens of each loss that averages look at.")
    starts: tuple[float, ...] = setting(
        (0.3, 0.45, 0.6, 0.75, 0.9), "Tail averages: where they start, of all steps."
    )
    decays: tuple[float, ...] = setting(
        (0.9, 0.98, 0.995, 0.998, 0.999, 0.9995), "Exponential averages: decays."
    )
    shares: tuple[float, ...] = setting(
        (0.05, 0.1, 0.25, 0.5), "Proportional tails: shares of all iterates."
    )

    overfit_fraction: float = setting(0.1, "Part of the text that is learnt by heart.")
    overfit_epochs: int = setting(30, "Passes over it, without dropout.")
    basin_epochs: int = setting(24, "Passes of the run that changes basins.")
    basin_factor: float = setting(
        10.0, "What the learning rate is multiplied by after half of them."
    )

    length_width: int = setting(24, "Width of the model whose iterates are all kept.")
    length_fraction: float = setting(0.1, "Part of the text that it is trained on.")
    length_rate: float = setting(0.01, "Its learning rate.")
    length_epochs: int = setting(40, "Passes over it.")
    length_evaluations: int = setting(2, "Evaluations an epoch.")

    squares_runs: int = setting(50, "Least-squares problems.")
    squares_features: int = setting(20, "Their features.")
    squares_steps: int = setting(40_000, "Steps on each, one example a step.")
    squares_rate: float = setting(0.01, "Learning rate there.")
    squares_period: int = setting(100, "Steps between evaluations there.")

    def check(self) -> None:
        """Raises ValueError for settings that no study can have."""
        positive = (
            "width",
            "epochs",
            "learning_rate",
            "evaluations",
            "loss_tokens",
            "overfit_epochs",
            "basin_epochs",
            "basin_factor",
            "length_width",
            "length_rate",
            "length_epochs",
            "length_evaluations",
            "squares_runs",
            "squares_features",
            "squares_rate",
            "squares_period",
        )
        for name in positive:
            if getattr(self, name) <= 0:
                raise ValueError(
                    f"--{name} must be positive, found {getattr(self, name)}."
                )
        if self.squares_steps < self.squares_period:
            raise ValueError(
                f"--squares_steps must be at least --squares_period, "
                f"{self.squares_period}; found {self.squares_steps}."
            )
        for name in ("fraction", "overfit_fraction", "length_fraction"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(
                    f"--{name} must lie in (0, 1], found {getattr(self, name)}."
                )
        for name in ("starts", "decays", "shares"):
            for value in getattr(self, name):
                if not 0 < value < 1:
                    raise ValueError(f"--{name} must lie in (0, 1), found {value}.")


PRESETS = {
    # Under a minute: does everything run?
    "smoke": AveragingConfig(
        fraction=0.02,
        width=8,
        epochs=2,
        loss_tokens=300,
        starts=(0.5,),
        decays=(0.9,),
        shares=(0.5,),
        overfit_fraction=0.01,
        overfit_epochs=2,
        basin_epochs=2,
        length_width=4,
        length_epochs=1,
        length_evaluations=3,
        squares_runs=2,
        squares_features=3,
        squares_steps=400,
    ),
    "small": AveragingConfig(),
    # Two and a half hours on one core: the results of README.md.
    "ptb": AveragingConfig(
        corpus="ptb",
        fraction=0.25,
        length_fraction=1.0,
        length_epochs=10,
        length_evaluations=4,
    ),
    # Section 3.5: 24 million parameters, E = 1000 steps (here an epoch, 1,328).
    "paper": AveragingConfig(corpus="ptb", width=951, epochs=100, evaluations=1),
}
