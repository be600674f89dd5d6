"""Settings of `experiments.seed_labels`, and its presets."""

from __future__ import annotations

import dataclasses

from experiments.kit.grids import Grid
from experiments.kit.seed_list import HERE, PLANTED, PUBLISHED, SET_NAMES
from rlm_tf.command_line.flags import setting

VIEWS = ("subject+body", "raw", "body")


@dataclasses.dataclass(frozen=True)
class LabelsConfig:
    """A list of sets of documents."""

    sets: tuple[str, ...] = setting(HERE, f"Some of {', '.join(SET_NAMES)}.")
    views: tuple[str, ...] = setting(
        VIEWS[:2], f"Of 20 Newsgroups, some of {', '.join(VIEWS)}."
    )
    suggested: int = setting(20, "Words among which a seed left out is looked for.")
    examples: int = setting(5, "Documents that are shown after deletion (Table 3.4).")

    def check(self) -> None:
        """Raises ValueError for settings that no run can have."""
        for name, known in (("sets", SET_NAMES), ("views", VIEWS)):
            given = getattr(self, name)
            if not given or not set(given) <= set(known):
                raise ValueError(
                    f"--{name} must be some of {', '.join(known)}; found "
                    f"{', '.join(given) or 'none'}."
                )
        for name in ("suggested", "examples"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"--{name} must be positive, found {getattr(self, name)}."
                )


PRESETS = {
    # Seconds: does everything run?
    "smoke": LabelsConfig(sets=(PLANTED,), views=("subject+body",), suggested=5),
    "small": LabelsConfig(),
    # Table 3.1 whole: NYT needs a copy of one's own, AG's News all training texts.
    "paper": LabelsConfig(sets=PUBLISHED, views=VIEWS[:1]),
}
GRID = Grid("seed_labels", PRESETS, "running:runs_of", reads_data=True)
