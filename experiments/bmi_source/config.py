"""Settings of `experiments.bmi_source`, its arms and presets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from experiments.kit.grids import Grid
from rlm_tf.command_line.flags import setting

# What differs from arm to arm; see `SourceConfig` for the weights.
ARMS: Mapping[str, dict[str, Any]] = {
    # Kneser-Ney of the same text, of the order that is best on validation text.
    "n-gram": {},
    # No regulariser.
    "none": {},
    # The same, which waits ten times as long for a gain.
    "none-patient": {"patient": True},
    # Phase I.
    "base": {},
    "base-weak": {"weight": "weak"},
    "base-annealed": {"annealed": True},
    # The last state in place of the greatest outputs.
    "base-last": {"pooling": "last"},
    "base-last-annealed": {"pooling": "last", "annealed": True},
    # Phase II on top.
    "full": {"phase_two": "raml"},
    "full-annealed": {"phase_two": "raml", "annealed": True},
    "full-last-annealed": {"phase_two": "raml", "annealed": True, "pooling": "last"},
    "rl-annealed": {"phase_two": "rl", "annealed": True},
    # Pairs that share nothing.
    "random-annealed": {"annealed": True, "paired": False},
    "random-last-annealed": {"annealed": True, "paired": False, "pooling": "last"},
    # As patient as any: what only takes longer is told from what does not come.
    "base-patient": {"annealed": True, "patient": True},
    "base-last-patient": {"annealed": True, "pooling": "last", "patient": True},
    # As the best arm, likewise.
    "random-full-last-annealed": {
        "phase_two": "raml",
        "annealed": True,
        "paired": False,
        "pooling": "last",
        "patient": True,
    },
}


@dataclasses.dataclass(frozen=True)
class SourceConfig:
    """A grid of runs: every sentence length, size of text, arm and seed."""

    arms: tuple[str, ...] = setting(tuple(ARMS), f"Some of {', '.join(ARMS)}.")
    sentence_lengths: tuple[int, ...] = setting((7,), "Words of a sentence.")
    sentences: tuple[int, ...] = setting((3000,), "Sentences to train on.")
    num_topics: int = setting(6, "Topics, a marker each.")
    num_words: int = setting(20, "Other words.")
    shown: float = setting(0.95, "Probability that a sentence shows its topic.")
    stay: float = setting(0.9, "Probability that a topic stays.")
    units: int = setting(24, "Of the LSTM.")
    dropout: float = setting(0.3, "Of outputs.")
    learning_rate: float = setting(1.0, "Of gradient descent.")
    batch_size: int = setting(8, "Streams.")
    window: int = setting(40, "Tokens of a window.")
    pairs: int = setting(12, "Pairs of a step.")
    weight: float = setting(1.0, "Of Phase I.")
    weak_weight: float = setting(0.1, "Of Phase I in the weak arm, and of Phase II.")
    half_life: float = setting(12.0, "Epochs in which an annealed weight is halved.")
    discriminator_units: int = setting(100, "Of the discriminator.")
    patience: int = setting(5, "Epochs without gain after which Phase II begins.")
    stop: int = setting(
        20,
        "Epochs without a better average that end training; ten times as "
        "many of arms that are patient.",
    )
    most_epochs: int = setting(300, "Epochs at most.")
    valid_sentences: int = setting(2000, "Sentences that choose the epoch.")
    test_sentences: int = setting(5000, "Sentences that judge.")
    said_sentences: int = setting(20_000, "Sentences a model says, to count markers.")
    sandwich_pairs: int = setting(500, "Pairs of sentences of the sandwich.")

    def check(self) -> None:
        """Raises ValueError for settings that no run can have."""
        for name in ("arms", "sentence_lengths", "sentences"):
            if not getattr(self, name):
                raise ValueError(f"--{name} must name at least one.")
        for arm in self.arms:
            if arm not in ARMS:
                raise ValueError(
                    f"--arms must be some of {', '.join(ARMS)}; found {arm}."
                )
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            numbers = value if isinstance(value, tuple) else (value,)
            for number in numbers:
                if isinstance(number, int | float) and not number > 0:
                    if field.name == "dropout" and number == 0:
                        continue
                    raise ValueError(
                        f"--{field.name} must be positive, found {number}."
                    )
        for name in ("shown", "stay"):
            if getattr(self, name) > 1:
                raise ValueError(f"--{name} must be at most 1.")
        if not self.dropout < 1:
            raise ValueError(f"--dropout must be below 1, found {self.dropout}.")
        if self.sandwich_pairs < 2 or min(self.sentences) < 20:
            raise ValueError("--sandwich_pairs must be 2 and --sentences 20 at least.")


PRESETS = {
    # Under a minute: does everything run?
    "smoke": SourceConfig(
        arms=("n-gram", "none", "full-annealed", "rl-annealed"),
        sentences=(60,),
        units=6,
        patience=1,
        stop=2,
        most_epochs=4,
        valid_sentences=40,
        test_sentences=40,
        said_sentences=100,
        sandwich_pairs=10,
        discriminator_units=8,
    ),
    # Three sizes of text; a core, 20 minutes a seed.
    "small": SourceConfig(
        arms=("n-gram", "none", "base", "base-annealed", "full-annealed"),
        sentences=(1000, 3000, 10_000),
    ),
    # What else was tried at 3,000 sentences.
    "arms": SourceConfig(
        arms=(
            "base-weak",
            "base-last",
            "base-last-annealed",
            "full",
            "rl-annealed",
            "random-annealed",
            "random-last-annealed",
        ),
    ),
    # Sentences three times as long: the topic has to be kept longer.
    "long": SourceConfig(
        arms=(
            "n-gram",
            "none",
            "none-patient",
            "base-annealed",
            "full-annealed",
            "base-last-annealed",
            "base-patient",
            "base-last-patient",
            "full-last-annealed",
            "random-last-annealed",
            "random-full-last-annealed",
        ),
        sentence_lengths=(20,),
    ),
}
GRID = Grid("bmi_source", PRESETS, seeds=(1, 2, 3))
