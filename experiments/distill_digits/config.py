"""Settings of `experiments.distill_digits`, its teachers, students and presets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from experiments.kit.grids import Grid
from rlm_tf.command_line.flags import setting

# Of the exact sum: as many nats at the start as the authors' 1e-5 of theirs.
_EXACT = 8e-4
# Options of `StudentOrientedTeacher`, how images are mixed, what the last weights are.
TEACHERS: Mapping[str, dict[str, Any]] = {
    "standard": {},
    "no-CR": {"lipschitz": _EXACT},
    "no-LR": {"consistency": 1.0},
    "soteacher": {"lipschitz": _EXACT, "consistency": 1.0},
    "soteacher-authors": {
        "lipschitz": 1e-5,
        "consistency": 1.0,
        "variant": "authors",
    },
    "l1": {"l1": 1e-5},
    "smoothing": {"label_smoothing": 0.1},
    "mixup": {"mixing": "mixup", "alpha": 0.2},
    "cutmix": {"mixing": "cutmix", "alpha": 0.2},
    "augmix": {"mixing": "augmix", "alpha": 1.0},
    "crl": {"correctness_ranking": 1.0},
    "early-stopped": {"stops": True},
    "cross-fitted": {"folds": 5},
}
# Depth and widening, or widths, of networks.
NETWORKS: Mapping[str, dict[str, Any]] = {
    "wrn-16-2": {"depth": 16, "widen": 2},
    "wrn-16-1": {"depth": 16, "widen": 1},
    "resnet8": {"depth": 8, "widths": (16, 16, 32, 64)},
    # Seconds: does everything run?
    "wrn-10-1": {"depth": 10, "widen": 1},
}
# `alone`: labels alone; `rco`: KD from the teacher's stages; the others `recipe`'s.
METHODS = (
    *("alone", "rco", "kd", "fitnet", "at", "sp", "cc", "vid", "rkd", "pkt"),
    *("ft", "nst", "ab", "crd", "sskd", "dkd", "dist"),
)
SOTEACHERS = ("no-CR", "no-LR", "soteacher", "soteacher-authors")


@dataclasses.dataclass(frozen=True)
class DigitsConfig:
    """Teachers, and students of some of them by some methods."""

    teachers: tuple[str, ...] = setting(
        ("standard", *SOTEACHERS), f"Some of {', '.join(TEACHERS)}."
    )
    methods: tuple[str, ...] = setting(
        ("alone", "kd"), f"Of students, some of {', '.join(METHODS)}."
    )
    networks: tuple[str, ...] = setting(
        ("wrn-16-1",), f"Of students, some of {', '.join(NETWORKS)}."
    )
    teacher_network: str = setting("wrn-16-2", "Likewise, of teachers.")
    train_teachers: bool = setting(
        True, "Whether teachers are runs, too; else they are there."
    )
    examples: int = setting(300, "Digits to train on.")
    held_out: int = setting(200, "Digits for stopping and temperatures.")
    epochs: int = setting(60, "Of each training.")
    batch_size: int = setting(64, "Digits of a step.")
    rate: float = setting(0.05, "Of SGD; a tenth of it after 5/8, 3/4 and 7/8.")
    weight_decay: float = setting(5e-4, "Of all weights.")
    negatives: int = setting(256, "Of CRD, an example.")
    preparing_epochs: int = setting(
        20, "Of what FT and SSKD learn from the teacher alone."
    )

    def check(self) -> None:
        """Raises ValueError for settings that no run can have."""
        for name, known in (
            ("teachers", TEACHERS),
            ("methods", METHODS),
            ("networks", NETWORKS),
        ):
            given = getattr(self, name)
            if not given:
                raise ValueError(f"--{name} must name at least one.")
            for each in given:
                if each not in known:
                    raise ValueError(
                        f"--{name} must be some of {', '.join(known)}; found {each}."
                    )
        if self.teacher_network not in NETWORKS:
            raise ValueError(
                f"--teacher_network must be one of {', '.join(NETWORKS)}; found "
                f"{self.teacher_network}."
            )
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if not value > 0:
                raise ValueError(f"--{field.name} must be positive, found {value}.")


_SMALL = DigitsConfig()
_TWO = ("standard", "soteacher-authors")
PRESETS = {
    "smoke": DigitsConfig(
        teachers=("soteacher-authors",),
        methods=("alone", "kd", "sskd", "ab", "rco"),
        networks=("wrn-10-1",),
        teacher_network="wrn-10-1",
        examples=40,
        held_out=20,
        epochs=2,
        batch_size=20,
        negatives=4,
        preparing_epochs=1,
    ),
    # Tables 2.1, 2.3 and 2.4.
    "small": _SMALL,
    # Another student, of two of those teachers.
    "resnet8": dataclasses.replace(
        _SMALL, teachers=_TWO, networks=("resnet8",), train_teachers=False
    ),
    # Appendix B.3.
    "rivals": dataclasses.replace(
        _SMALL, teachers=("l1", "mixup", "crl", "early-stopped"), methods=("kd",)
    ),
    # Appendix B.2.
    "methods": dataclasses.replace(
        _SMALL,
        teachers=_TWO,
        methods=("fitnet", "at", "rkd", "crd", "sskd", "dkd", "dist"),
        train_teachers=False,
    ),
    # One seed, no claims: does it run, and what does it look like?
    "others": dataclasses.replace(
        _SMALL,
        teachers=("standard",),
        methods=("sp", "cc", "vid", "pkt", "ab", "ft", "nst", "rco"),
        train_teachers=False,
    ),
    "further": dataclasses.replace(
        _SMALL,
        teachers=("smoothing", "cutmix", "augmix", "cross-fitted"),
        methods=("kd",),
    ),
}
GRID = Grid("distill_digits", PRESETS, "running:runs_of")
