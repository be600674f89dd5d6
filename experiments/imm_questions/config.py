"""Settings of `experiments.imm_questions`, and its presets."""

from __future__ import annotations

import dataclasses

from rlm_tf.command_line.flags import setting


@dataclasses.dataclass(frozen=True)
class QuestionsConfig:
    """How large the studies are."""

    seed: int = setting(1, "Of all draws.")
    test_points: int = setting(10_000, "Points that measure accuracy.")
    runs: int = setting(200, "Data sets of each cell on the logistic task.")
    steps: int = setting(1000, "Of gradient descent there, at rate 1.")

    features: tuple[int, ...] = setting((3, 6, 12), "D of question 1.")
    multiples: tuple[float, ...] = setting(
        (0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0),
        "Examples per parameter in question 1.",
    )
    sizes: tuple[int, ...] = setting((5, 10, 20, 50), "Examples in questions 2 to 5.")
    grid_epochs: int = setting(75, "Epochs on the grid, question 4.")
    grid_runs: int = setting(30, "Seeds on the grid.")

    digit_sizes: tuple[int, ...] = setting(
        (30, 60, 120, 240), "Whole training images of question 6."
    )
    digit_runs: int = setting(3, "Draws of the training images.")
    digit_epochs: int = setting(60, "Passes over them.")

    text_fraction: float = setting(
        1.0, "Part of the embedded corpus, questions 2, 3, 5."
    )
    text_epochs: int = setting(12, "Passes over it.")
    text_arms: tuple[str, ...] = setting(
        (
            "none",
            "unigram",
            "classes",
            "bigram",
            "trigram",
            "unigram+bigram+trigram",
            "classes+bigram",
        ),
        "Restricted models of the language model, joined by `+`.",
    )
    text_dropouts: tuple[float, ...] = setting(
        (0.0, 0.2, 0.4, 0.6), "Dropout of the language model, question 5."
    )
    text_decays: tuple[float, ...] = setting(
        (1e-5,), "Weight decay of the language model, at dropout 0.4."
    )
    text_coefficients: tuple[float, ...] = setting(
        (0.1, 0.3, 1.0, 3.0, 10.0), "lambda of the language model, question 3."
    )
    text_width: int = setting(200, "Width of the language model's two layers.")

    def check(self) -> None:
        """Raises ValueError for settings that no study can have."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            values = value if isinstance(value, tuple) else (value,)
            may_be_zero = field.name in ("seed", "text_dropouts")
            if not values and field.name == "text_decays":
                continue
            if not values:
                raise ValueError(f"--{field.name} must not be empty.")
            if isinstance(values[0], str):
                continue
            if min(values) < 0 or (min(values) == 0 and not may_be_zero):
                raise ValueError(
                    f"--{field.name} must be positive, found "
                    f"{','.join(map(str, values))}."
                )
        known = {"none", "unigram", "classes", "bigram", "trigram"}
        for arm in self.text_arms:
            if not set(arm.split("+")) <= known:
                raise ValueError(
                    f"--text_arms must join some of {', '.join(sorted(known))} by +; "
                    f"found {arm!r}."
                )
        if min(self.features) < 2:
            raise ValueError("--features must be 2 at least.")


PRESETS = {
    "smoke": QuestionsConfig(
        test_points=200,
        runs=4,
        steps=10,
        features=(2, 3),
        multiples=(1.0, 2.0),
        sizes=(4, 6),
        grid_epochs=3,
        grid_runs=2,
        digit_sizes=(20,),
        digit_runs=1,
        digit_epochs=2,
        text_fraction=0.02,
        text_epochs=1,
        text_arms=("none", "classes+bigram"),
        text_dropouts=(0.4,),
        text_decays=(),
        text_coefficients=(0.3,),
        text_width=8,
    ),
    "small": QuestionsConfig(
        runs=50, steps=300, digit_runs=2, digit_sizes=(60, 240), text_epochs=4
    ),
    "paper": QuestionsConfig(),
}
