"""Settings of `experiments.imm_logistic`, and its presets."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from rlm_tf.command_line.flags import setting

if TYPE_CHECKING:
    from rlm_tf.data import LinearDiscriminant


@dataclasses.dataclass(frozen=True)
class LogisticConfig:
    """The task, the learner and how often it is run."""

    coefficients: tuple[float, ...] = setting(
        (1.0, 1.0, 1.0), "Of the discriminant; the first feature is the short context."
    )
    offset: float = setting(0.0, "d of the discriminant.")
    low: float = setting(-1.0, "Lower bound of the cube.")
    high: float = setting(1.0, "Upper bound of the cube.")
    test_points: int = setting(10_000, "Points that measure accuracy.")
    seed: int = setting(1, "Of all draws.")

    steps: int = setting(5000, "Of full-batch gradient descent, from zero.")
    learning_rate: float = setting(1.0, "Of gradient descent.")
    inverse_bandwidth: float = setting(1.0, "alpha of the kernel.")
    folds: int = setting(5, "Of cross-validation.")
    fitted_pairs: int = setting(
        100_000, "Pairs (x1, y) behind the fitted restricted model."
    )
    fitted_bins: int = setting(40, "Bins of the fitted restricted model.")

    figure1_size: int = setting(10, "Examples of a data set of Figure 1.")
    figure1_runs: int = setting(30, "Data sets of Figure 1.")
    figure2_sizes: tuple[int, ...] = setting(
        tuple(range(2, 51)), "Examples of a data set in Figure 2."
    )
    figure2_runs: int = setting(300, "Data sets of each size in Figure 2.")
    figure4_sizes: tuple[int, ...] = setting(
        (2, 10, 20, 30, 50), "Examples of a data set in Figure 4."
    )
    figure4_runs: int = setting(30, "Data sets of each size in Figure 4.")
    figure4_rates: tuple[float, ...] = setting((0.1, 1.0), "Learning rates there.")
    rule_sizes: tuple[int, ...] = setting(
        (2, 10, 20), "Sizes from which the rule for the ratio is fitted again."
    )
    rule_runs: int = setting(300, "Data sets of each size there.")
    tuning_sizes: tuple[int, ...] = setting(
        (10, 20), "Sizes at which ratio and bandwidth are cross-validated."
    )
    tuning_runs: int = setting(30, "Data sets of each size there.")
    tuning_steps: int = setting(1000, "Steps of gradient descent there.")
    choices_runs: int = setting(100, "Data sets of each other choice of the task.")

    @property
    def task(self) -> LinearDiscriminant:
        """The discriminant."""
        # Not earlier: settings are read before TensorFlow is imported.
        from rlm_tf.data import LinearDiscriminant

        return LinearDiscriminant(self.coefficients, self.offset, self.low, self.high)

    def check(self) -> None:
        """Raises ValueError for settings that no study can have."""
        self.task.check()
        if len(self.coefficients) < 2:
            raise ValueError("--coefficients must be two at least.")
        for name in (
            "test_points",
            "steps",
            "fitted_pairs",
            "fitted_bins",
            "figure1_size",
            "figure1_runs",
            "figure2_runs",
            "figure4_runs",
            "rule_runs",
            "tuning_runs",
            "tuning_steps",
            "choices_runs",
        ):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"--{name} must be positive, found {getattr(self, name)}."
                )
        for name in ("figure2_sizes", "figure4_sizes", "rule_sizes", "tuning_sizes"):
            sizes = getattr(self, name)
            if not sizes or min(sizes) < 2 or len(set(sizes)) < len(sizes):
                raise ValueError(
                    f"--{name} must be distinct integers from 2 on, found "
                    f"{','.join(map(str, sizes))}."
                )
        if self.folds < 2:
            raise ValueError(f"--folds must be at least 2, found {self.folds}.")
        rates = (self.learning_rate, *self.figure4_rates)
        if not self.figure4_rates or min(rates) <= 0:
            raise ValueError("--learning_rate and --figure4_rates must be positive.")
        if not self.inverse_bandwidth >= 0:
            raise ValueError(
                "--inverse_bandwidth must not be negative, found "
                f"{self.inverse_bandwidth}."
            )


PRESETS = {
    "smoke": LogisticConfig(
        test_points=200,
        steps=20,
        fitted_pairs=500,
        figure1_runs=3,
        figure2_sizes=(3, 6),
        figure2_runs=4,
        figure4_sizes=(3, 6),
        figure4_runs=3,
        rule_sizes=(3, 6),
        rule_runs=3,
        tuning_sizes=(4,),
        tuning_runs=2,
        tuning_steps=10,
        choices_runs=3,
    ),
    "small": LogisticConfig(
        figure2_sizes=(2, 5, 10, 20, 30, 50),
        figure2_runs=100,
        steps=1000,
        rule_runs=50,
        tuning_sizes=(10,),
        tuning_runs=10,
        choices_runs=30,
    ),
    # Figures 1, 2 and 4.
    "paper": LogisticConfig(),
}
