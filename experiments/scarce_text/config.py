"""Settings of `experiments.scarce_text`, and its presets."""

from __future__ import annotations

import dataclasses

from experiments.kit.grids import Grid
from experiments.scarce_text.arms import ARMS, ENSEMBLE, LONGER, PEERS, PUBLISHED
from rlm_tf.command_line.flags import setting

STUDIES = ("trials", "arms", "counted", "curve", "corpora", "published")
# Trials of `none`, by a Gaussian process; other arms have those that they list.
SEARCHED = 12


@dataclasses.dataclass(frozen=True)
class ScarceConfig:
    """A grid of runs: every arm, trial, amount of text and seed."""

    study: str = setting("arms", f"Which tables runs are in: {', '.join(STUDIES)}.")
    arms: tuple[str, ...] = setting(
        ("none",),
        f"Some of {', '.join((*ARMS, *PEERS, *PUBLISHED))}, or {ENSEMBLE}ARM, the mean "
        "of the seeds of an arm.",
    )
    trials: tuple[int, ...] = setting(
        (), "Numbers of the trials, from 1 on, of study `trials`."
    )
    corpus: str = setting("ptb", "The corpus.")
    pieces: int = setting(0, "Subwords of the vocabulary; 0: the corpus' own words.")
    fractions: tuple[float, ...] = setting((0.125,), "Shares of the training text.")
    width: int = setting(200, "Of embedding and layers of recurrent models.")
    transformer_width: int = setting(192, "The same of the Transformer.")
    num_layers: int = setting(2, "Layers of recurrent models.")
    transformer_layers: int = setting(4, "The same of the Transformer.")
    batch_size: int = setting(20, "Rows of a batch.")
    window: int = setting(35, "Tokens of a window.")
    epochs: int = setting(20, "Passes over the text.")
    looked_at: int = setting(
        20_000,
        "First validation tokens that averages are chosen by while training; all are "
        "scored at the end.",
    )
    bank_size: int = setting(20_000, "Predictions of the bank of arms that have one.")
    rounds: int = setting(5, "Of the Mogrifier.")
    rank: int = setting(40, "Of its matrices.")
    project_steps: int = setting(
        0, "Of published models: time so many steps instead, and project the hours."
    )

    def check(self) -> None:
        """Raises ValueError for settings that no run can have."""
        known = {*ARMS, *PEERS, *PUBLISHED, *(ENSEMBLE + arm for arm in ARMS)}
        if not self.arms or not self.fractions:
            raise ValueError("--arms and --fractions must name one at least.")
        for arm in self.arms:
            if arm not in known:
                raise ValueError(
                    f"--arms must be some of {', '.join(sorted(known))}; found {arm}."
                )
        if self.study not in STUDIES:
            raise ValueError(
                f"--study must be one of {', '.join(STUDIES)}; found {self.study}."
            )
        if (self.study == "trials") != bool(self.trials):
            raise ValueError("--trials are of --study=trials, which needs them.")
        for arm in self.arms if self.trials else ():
            most = trials_of(arm)
            if not most:
                raise ValueError(f"--study=trials: arm {arm} has no trials.")
            wrong = [number for number in self.trials if not 1 <= number <= most]
            if wrong:
                raise ValueError(
                    f"--trials must lie in 1..{most} for arm {arm}; found {wrong[0]}."
                )
        if self.project_steps and not set(self.arms) <= set(PUBLISHED):
            raise ValueError(
                f"--project_steps is of the arms {', '.join(PUBLISHED)}; found "
                f"{', '.join(self.arms)}."
            )
        for fraction in self.fractions:
            if not 0 < fraction <= 1:
                raise ValueError(f"--fractions must lie in (0, 1]; found {fraction}.")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            least = 0 if field.name in ("pieces", "project_steps") else 1
            if isinstance(value, int) and value < least:
                raise ValueError(
                    f"--{field.name} must be at least {least}, found {value}."
                )


def trials_of(arm: str) -> int:
    """Returns how many trials an arm has."""
    return SEARCHED if arm == "none" else len(ARMS[arm].trials) if arm in ARMS else 0


_ALL = tuple(range(1, SEARCHED + 1))
# Of which those of `_COMPARED` have three seeds.
_MATCHED = (
    "noising",
    "imm-2",
    "imm-3",
    "imm-5",
    "imm-2345",
    "imm-bank",
    "imm-falling",
    "noising-imm",
    "distilled-5",
    "mogrifier",
    "transformer",
    "transformer-imm",
)
# `none`, `noising`, the four arms whose best trials are the best, mixed, and IMM as the
# paper has it; and `none` for as much time as the mean of three seeds takes.
_COMPARED = (
    "none",
    "noising",
    "noising-imm",
    "mogrifier",
    "imm-2345",
    "imm-5",
    "imm-2",
)
_COSTLIER = ("none-wider", *(arm for arm in ARMS if arm.endswith(LONGER)))
_ELSEWHERE = (*PEERS, "none", "noising", ENSEMBLE + "none", ENSEMBLE + "noising")
PRESETS = {
    # Seconds: does everything run?
    "smoke": ScarceConfig(
        arms=("kneser-ney-2", "none", "imm-2345", "distilled-5", "ensemble-none"),
        corpus="python-docs",
        fractions=(0.02,),
        width=6,
        num_layers=1,
        batch_size=4,
        window=8,
        epochs=1,
    ),
    "search": ScarceConfig(study="trials", trials=_ALL),
    "trials": ScarceConfig(study="trials", arms=_MATCHED, trials=(1, 2, 3, 4)),
    "small": ScarceConfig(
        arms=(
            *(*PEERS, *_COMPARED, *_COSTLIER),
            *(f"{ENSEMBLE}{arm}{LONGER}" for arm in ("none", "noising")),
            *(ENSEMBLE + arm for arm in _COMPARED),
        )
    ),
    "counted-trials": ScarceConfig(
        study="trials",
        arms=("counted-imm-2", "counted-imm-5", "counted-bank-2"),
        trials=(1, 2, 3, 4),
    ),
    "counted": ScarceConfig(
        study="counted",
        arms=(
            *PEERS,
            *("none", "counted-imm-2"),
            *(ENSEMBLE + "none", ENSEMBLE + "counted-imm-2"),
        ),
    ),
    "curve": ScarceConfig(
        study="curve",
        arms=(*PEERS, "none", "none-lighter", ENSEMBLE + "none"),
        fractions=(0.0625, 0.125, 0.25, 0.5),
    ),
    "corpora": ScarceConfig(
        study="corpora",
        arms=_ELSEWHERE,
        corpus="wikitext-2",
        fractions=(0.111,),
    ),
    "shakespeare": ScarceConfig(
        study="corpora",
        arms=_ELSEWHERE,
        corpus="tiny-shakespeare",
        pieces=2000,
        fractions=(1.0,),
    ),
    "published": ScarceConfig(
        study="published", arms=(*PEERS, "zaremba-small"), fractions=(1.0,)
    ),
    # About five hours each, in pieces: a killed run goes on.
    "published-medium": ScarceConfig(
        study="published",
        arms=("zaremba-medium", "zaremba-medium-imm"),
        fractions=(1.0,),
    ),
    "projected": ScarceConfig(
        study="published",
        arms=("zaremba-medium", "zaremba-medium-imm", "zaremba-medium-noising"),
        fractions=(1.0,),
        project_steps=5,
    ),
}
GRID = Grid("scarce_text", PRESETS, "running:runs_of", reads_data=True)
