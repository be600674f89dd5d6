"""Settings of `experiments.distill_digits`, its teachers, students and presets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

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
    "no-CR-authors": {"lipschitz": 1e-5, "variant": "authors"},
    "l1": {"l1": 1e-5},
    "smoothing": {"label_smoothing": 0.1},
    "mixup": {"mixing": "mixup", "alpha": 0.2},
    "cutmix": {"mixing": "cutmix", "alpha": 0.2},
    "augmix": {"mixing": "augmix", "alpha": 1.0},
    "crl": {"correctness_ranking": 1.0},
    "early-stopped": {"stops": True},
    "cross-fitted": {"folds": 5},
}


class ImageSet(NamedTuple):
    """How images of a set are read, and trained on.

    Attributes:
        shape: Of an image.
        classes: How many.
        shift: Pixels that images are moved at most.
        flip: Whether half are mirrored.
        rotation: Degrees that they are turned at most.
        mean: Of each channel, over 255.
        deviation: Likewise.
        falls: Shares of a teacher's epochs after which the rate falls to a tenth.
        more: Epochs of a student beyond those of a teacher.
        size: Of images that are read from files as they are needed; 0: none are.
    """

    shape: tuple[int, int, int]
    classes: int
    shift: int = 0
    flip: bool = False
    rotation: float = 0.0
    mean: tuple[float, ...] | float = 0.0
    deviation: tuple[float, ...] | float = 1.0
    # After 150, 180 and 210 of 240.
    falls: tuple[float, ...] = (5 / 8, 6 / 8, 7 / 8)
    more: int = 0
    size: int = 0


_IMAGENET: dict[str, Any] = {
    "mean": (0.485, 0.456, 0.406),
    "deviation": (0.229, 0.224, 0.225),
}
SETS: Mapping[str, ImageSet] = {
    "digits": ImageSet((8, 8, 1), 10, shift=1),
    "cifar100": ImageSet(
        (32, 32, 3),
        100,
        shift=4,
        flip=True,
        mean=(0.5071, 0.4867, 0.4408),
        deviation=(0.2675, 0.2565, 0.2761),
    ),
    # After 30 and 60 of 90, students also after 90 of 100.
    "tiny-imagenet": ImageSet(
        (64, 64, 3),
        200,
        shift=4,
        flip=True,
        rotation=20.0,
        falls=(1 / 3, 2 / 3, 1.0),
        more=10,
        **_IMAGENET,
    ),
    # Folders imagenet/train and imagenet/val; the thesis does not tell its schedule.
    "imagenet": ImageSet(
        (224, 224, 3), 1000, falls=(1 / 3, 2 / 3), size=224, **_IMAGENET
    ),
}
# Depth and widening, or widths, of networks; or blocks of the larger ResNets.
NETWORKS: Mapping[str, dict[str, Any]] = {
    "wrn-16-2": {"depth": 16, "widen": 2},
    "wrn-16-1": {"depth": 16, "widen": 1},
    "resnet8": {"depth": 8, "widths": (16, 16, 32, 64)},
    "wrn-40-2": {"depth": 40, "widen": 2},
    "wrn-40-1": {"depth": 40, "widen": 1},
    "resnet32x4": {"depth": 32, "widths": (32, 64, 128, 256)},
    "shufflenet-v2": {},
    "resnet18": {"blocks": (2, 2, 2, 2)},
    "resnet34": {"blocks": (3, 4, 6, 3)},
    "resnet152": {"blocks": (3, 8, 36, 3), "bottleneck": True},
    # Seconds: does everything run?
    "wrn-10-1": {"depth": 10, "widen": 1},
}
# `alone`: labels alone; `rco`: KD from the teacher's stages; `calibrated`: KD from a
# teacher at the temperature that fits held-out images; the others `recipe`'s.
METHODS = (
    *("alone", "rco", "kd", "calibrated", "fitnet", "at", "sp", "cc", "vid", "rkd"),
    *("pkt", "ft", "nst", "ab", "crd", "sskd", "dkd", "dist", "dist_unscaled"),
)
_EXACT_ARMS = ("no-CR", "no-LR", "soteacher")
SOTEACHERS = (*_EXACT_ARMS, "no-CR-authors", "soteacher-authors")
# Settings that say "none" by 0.
_MAY_BE_ZERO = ("project_steps", "student_rate")
# Of dkd, whose weight rises at first: after 20 of 240 epochs.
WARM_UP = 1 / 12


@dataclasses.dataclass(frozen=True)
class DigitsConfig:
    """Teachers, and students of some of them by some methods."""

    teachers: tuple[str, ...] = setting(
        ("standard", *_EXACT_ARMS, "soteacher-authors"),
        f"Some of {', '.join(TEACHERS)}.",
    )
    methods: tuple[str, ...] = setting(
        ("alone", "kd"), f"Of students, some of {', '.join(METHODS)}."
    )
    networks: tuple[str, ...] = setting(
        ("wrn-16-1",), f"Of students, some of {', '.join(NETWORKS)}."
    )
    teacher_network: str = setting("wrn-16-2", "Likewise, of teachers.")
    data: str = setting(
        "digits", f"One of {', '.join(SETS)}; all but digits need --data_dir."
    )
    train_teachers: bool = setting(
        True, "Whether teachers are runs, too; else they are there."
    )
    examples: int = setting(300, "Images to train on.")
    held_out: int = setting(200, "Images for stopping and temperatures.")
    epochs: int = setting(60, "Of each training.")
    batch_size: int = setting(64, "Images of a step.")
    rate: float = setting(
        0.05, "Of SGD; a tenth of it, three times, as the thesis has it of the images."
    )
    student_rate: float = setting(0.0, "Of students' SGD; 0: `rate`.")
    lipschitz: float = setting(1.0, "Times the penalties of Lipschitz constants.")
    weight_decay: float = setting(5e-4, "Of all weights.")
    negatives: int = setting(256, "Of CRD, an example.")
    preparing_epochs: int = setting(
        20, "Of what FT and SSKD learn from the teacher alone."
    )
    project_steps: int = setting(
        0, "Time so many steps on noise instead, and project the hours."
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
        for name, choices in (
            ("teacher_network", tuple(NETWORKS)),
            ("data", tuple(SETS)),
        ):
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"--{name} must be one of {', '.join(choices)}; found "
                    f"{getattr(self, name)}."
                )
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if field.name in _MAY_BE_ZERO and value == 0:
                continue
            if not value > 0:
                raise ValueError(f"--{field.name} must be positive, found {value}.")


_SMALL = DigitsConfig()
_TWO = ("standard", "soteacher-authors")
# Table B.2 has not these, or Table 2.1 has them.
_OWN_METHODS = ("alone", "kd", "calibrated", "dkd", "dist", "dist_unscaled")
_PAPER = DigitsConfig(
    teachers=("standard", "no-CR-authors", "no-LR", "soteacher-authors"),
    methods=("alone", "kd"),
    networks=("wrn-40-1", "wrn-16-2"),
    teacher_network="wrn-40-2",
    data="cifar100",
    examples=45_000,
    held_out=5000,
    epochs=240,
    negatives=16_384,
    preparing_epochs=60,
    project_steps=2,
)
PRESETS = {
    "smoke": DigitsConfig(
        teachers=("soteacher-authors",),
        methods=("alone", "kd", "sskd", "ab", "rco", "dkd", "at", "crd", "calibrated"),
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
        _SMALL,
        teachers=("no-CR-authors", "l1", "mixup", "crl", "early-stopped"),
        methods=("kd",),
    ),
    # Appendix B.2.
    "methods": dataclasses.replace(
        _SMALL,
        teachers=_TWO,
        methods=("fitnet", "at", "rkd", "crd", "sskd", "dkd", "dist_unscaled"),
        train_teachers=False,
    ),
    # One seed, no claims: does it run, and what does it look like?
    "others": dataclasses.replace(
        _SMALL,
        teachers=("standard",),
        methods=(
            *("sp", "cc", "vid", "pkt", "ab", "ft", "nst", "rco", "dist"),
            "calibrated",
        ),
        train_teachers=False,
    ),
    "further": dataclasses.replace(
        _SMALL,
        teachers=("smoothing", "cutmix", "augmix", "cross-fitted"),
        methods=("kd",),
    ),
    # The thesis' own sizes: some steps are timed; with --project_steps=0 they are run.
    "paper": _PAPER,
    "paper-shufflenet": dataclasses.replace(
        _PAPER,
        networks=("shufflenet-v2",),
        teacher_network="resnet32x4",
        student_rate=0.01,
    ),
    # Table B.2.
    "paper-methods": dataclasses.replace(
        _PAPER,
        teachers=_TWO,
        methods=tuple(each for each in METHODS if each not in _OWN_METHODS),
        networks=("wrn-40-1",),
        train_teachers=False,
    ),
    "paper-tiny": DigitsConfig(
        teachers=_PAPER.teachers,
        methods=("alone", "kd"),
        networks=("resnet18",),
        teacher_network="resnet34",
        data="tiny-imagenet",
        examples=95_000,
        held_out=5000,
        epochs=90,
        batch_size=128,
        rate=0.1,
        lipschitz=0.1,
        project_steps=2,
    ),
    "paper-imagenet": DigitsConfig(
        teachers=("standard", "soteacher-authors"),
        methods=("alone", "kd"),
        networks=("resnet18",),
        teacher_network="resnet152",
        data="imagenet",
        examples=1_271_167,
        held_out=10_000,
        epochs=90,
        batch_size=256,
        rate=0.1,
        lipschitz=0.1,
        weight_decay=1e-4,
        project_steps=1,
    ),
}
GRID = Grid("distill_digits", PRESETS, "running:runs_of", reads_data=True)
