"""Settings of `experiments.mi_known`, and its presets."""

from __future__ import annotations

import dataclasses

from rlm_tf.command_line.flags import setting


@dataclasses.dataclass(frozen=True)
class KnownConfig:
    """Sources, and how long critics are trained."""

    seeds: tuple[int, ...] = setting((1, 2, 3), "One source and critic each.")
    folds: int = setting(10, "Of the protocol.")
    gaussian_pairs: int = setting(20, "Independent pairs of normal variables.")
    gaussian_information: tuple[float, ...] = setting(
        (2.0, 4.0, 6.0, 8.0, 10.0), "Nats of all pairs together."
    )
    gaussian_steps: int = setting(3000, "Training steps of a critic.")
    gaussian_batch: int = setting(128, "Fresh pairs of a step.")
    gaussian_units: int = setting(256, "Of each of two hidden layers.")
    gaussian_test: int = setting(
        400, "Batches that estimate after training, a multiple of 8."
    )
    markov_states: int = setting(30, "States of the chain.")
    markov_spread: float = setting(0.1, "Of the Dirichlet that draws its rows.")
    markov_tokens: int = setting(200_000, "Length of the text.")
    markov_segment: int = setting(8, "Tokens of a segment.")
    markov_gaps: tuple[int, ...] = setting((0, 1, 3), "Tokens between segments.")
    topic_sentences: int = setting(25_000, "Length of the text.")
    topic_distances: tuple[int, ...] = setting((1, 2, 4), "From sentence to sentence.")

    def check(self) -> None:
        """Raises ValueError for settings that no study can have."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            numbers = value if isinstance(value, tuple) else (value,)
            least: float = 0 if field.name == "markov_gaps" else 1
            if "spread" in field.name or "information" in field.name:
                least = 1e-9
            if not numbers or min(numbers) < least:
                raise ValueError(
                    f"--{field.name} must be at least {least}, found {value}."
                )
        if self.gaussian_test % 8:
            raise ValueError(
                f"--gaussian_test must be a multiple of 8, found {self.gaussian_test}."
            )
        if self.folds < 3 or self.markov_states < 2 or self.gaussian_batch < 2:
            raise ValueError(
                "--folds must be at least 3, --markov_states and --gaussian_batch 2."
            )


PRESETS = {
    "smoke": KnownConfig(
        seeds=(1,),
        folds=3,
        gaussian_information=(2.0,),
        gaussian_steps=20,
        gaussian_units=16,
        gaussian_test=8,
        markov_tokens=2000,
        markov_gaps=(0,),
        topic_sentences=300,
        topic_distances=(1,),
    ),
    "small": KnownConfig(),
}
