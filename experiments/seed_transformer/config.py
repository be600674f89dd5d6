"""Settings of `experiments.seed_transformer`, its arms and presets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from experiments.kit.grids import Grid
from experiments.kit.seed_list import PLANTED, PUBLISHED, SET_NAMES
from rlm_tf.command_line.flags import setting

# How labels are selected, what the probe and the final training delete, what the probe
# reads in place of the documents, and where it has dropout of its own (Figure 3.5): the
# place, and whether of whole vectors.
ARMS: Mapping[str, dict[str, Any]] = {
    "vanilla": {"select": "all"},
    "standard": {"select": "confident"},
    "seed-deletion": {"select": "confident", "probe": "seeds"},
    "random-deletion": {"select": "confident", "probe": "random"},
    "deleted": {"select": "all", "final": "random"},
    "mlm-replace": {"select": "confident", "reads": "replaced"},
    "paraphrase": {"select": "confident", "reads": "paraphrased"},
    "drop-all": {"select": "confident", "dropout": ("all", False)},
    "drop-output": {"select": "confident", "dropout": ("output", False)},
    "drop-tokens": {"select": "confident", "dropout": ("tokens", False)},
    "drop2d-output": {"select": "confident", "dropout": ("output", True)},
    "drop2d-tokens": {"select": "confident", "dropout": ("tokens", True)},
}
MAIN = ("vanilla", "standard", "seed-deletion", "random-deletion", "deleted")
# Of the same table; the first takes a pass of the masked language model over all
# documents, the second a file.
REWRITTEN = ("mlm-replace", "paraphrase")


@dataclasses.dataclass(frozen=True)
class TransformerConfig:
    """A grid of runs: every set, arm and seed."""

    sets: tuple[str, ...] = setting(("ag-news",), f"Some of {', '.join(SET_NAMES)}.")
    arms: tuple[str, ...] = setting(MAIN, f"Some of {', '.join(ARMS)}.")
    encoder: str = setting(
        "runs/electra/3000steps-masked-g4-rate0.002-seed1",
        "Folder of a masked language model of `experiments.electra "
        "--preset=generators`; or of a published BERT; or `tiny`: one that is made up.",
    )
    paraphrases: str = setting(
        "",
        "Of arm `paraphrase`: a text file with a line for each document, which says it "
        "in other words; or the folder of a T5 of KerasHub's that does.",
    )
    replaced: float = setting(0.9, "Share of the pieces that `mlm-replace` replaces.")
    length: int = setting(64, "Pieces of a document that are read.")
    epochs: int = setting(3, "Of each training.")
    rate: float = setting(1e-3, "The highest, of AdaMax; it falls in a line.")
    batch_size: int = setting(32, "Documents of a step.")
    dropout: float = setting(0.1, "Of encoders, but where an arm has its own.")
    arm_dropout: float = setting(0.5, "Of arms with a dropout of their own.")
    fraction: float = setting(0.5, "Share of the labels that is selected.")
    iterations: int = setting(1, "Of self-training.")
    share: float = setting(0.5, "Of the pool that the last iteration learns from.")
    project_steps: int = setting(
        0, "Time so many steps at BERT-base's size instead, and project the hours."
    )

    def check(self) -> None:
        """Raises ValueError for settings that no run can have."""
        for name, known in (("sets", SET_NAMES), ("arms", tuple(ARMS))):
            given = getattr(self, name)
            if not given or not set(given) <= set(known):
                raise ValueError(
                    f"--{name} must be some of {', '.join(known)}; found "
                    f"{', '.join(given) or 'none'}."
                )
        for name in ("length", "epochs", "rate", "batch_size"):
            if not getattr(self, name) > 0:
                raise ValueError(
                    f"--{name} must be positive, found {getattr(self, name)}."
                )
        if "paraphrase" in self.arms and not (self.paraphrases or self.project_steps):
            raise ValueError(
                "the arm paraphrase needs --paraphrases, a text file or a folder."
            )
        for name in ("fraction", "share", "replaced"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(
                    f"--{name} must lie in (0, 1], found {getattr(self, name)}."
                )
        for name in ("dropout", "arm_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(
                    f"--{name} must lie in [0, 1), found {getattr(self, name)}."
                )
        if self.project_steps < 0:
            raise ValueError(
                f"--project_steps must not be negative, found {self.project_steps}."
            )
        if self.project_steps and PLANTED in self.sets:
            raise ValueError("--project_steps are of published sets, not of planted.")
        if self.iterations < 0:
            raise ValueError(
                f"--iterations must not be negative, found {self.iterations}."
            )


PRESETS = {
    # Seconds: does everything run?
    "smoke": TransformerConfig(
        sets=(PLANTED,),
        arms=("vanilla", "random-deletion", "mlm-replace", "drop2d-tokens"),
        encoder="tiny",
        length=24,
        epochs=1,
        rate=0.01,
        batch_size=64,
    ),
    "small": TransformerConfig(),
    "replaced": TransformerConfig(arms=("mlm-replace",)),
    # Figure 3.5: one seed, no claim.
    "dropouts": TransformerConfig(
        arms=tuple(arm for arm in ARMS if arm.startswith("drop"))
    ),
    # The thesis' own size: some steps are timed; with --encoder=DIR, a published
    # BERT-base, and --project_steps=0 it is run.
    "paper": TransformerConfig(
        sets=PUBLISHED,
        arms=(*MAIN, *REWRITTEN),
        project_steps=2,
        length=512,
        epochs=4,
        rate=2e-5,
        iterations=5,
        share=1.0,
    ),
}
GRID = Grid("seed_transformer", PRESETS, "running:runs_of", reads_data=True)
