"""Settings of `experiments.electra`, its arms and presets."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.kit.encoder_config import EncoderConfig
from experiments.kit.grids import Grid
from experiments.kit.task_list import GLUE, TASKS
from rlm_tf.command_line.flags import setting

# Whose embeddings a detector has, and whether both networks have an optimiser of their
# own; `masked` has no detector.
ARMS: Mapping[str, dict[str, Any]] = {
    "masked": {},
    "original": {"embeddings": "shared", "optimizers": 1},
    "separate": {"embeddings": "separate", "optimizers": 1},
    "disentangled": {"embeddings": "disentangled", "optimizers": 2},
    "decoupled": {"embeddings": "separate", "optimizers": 2},
}
# The best rates on validation text, of the detector or of both: of `original` and
# `decoupled` by preset `rates`; of `masked` by single runs when the study was set up;
# the steps between have that of `original`, untuned.
CHOSEN: Mapping[str, float] = {
    "masked": 2e-3,
    "original": 1e-3,
    "separate": 1e-3,
    "disentangled": 1e-3,
    # After 800 steps nothing tells its rates apart; the largest that was seen to train.
    "decoupled": 2e-3,
}
GENERATOR_RATE = CHOSEN["masked"]
# Table A.2: what fine-tuning is searched over, of each task; batches by layers of the
# encoder, those of Base and of Large. AdaMax, epsilon 1e-6, betas 0.9 and 0.98, clipped
# at 1, dropout 0.1, a rate that falls in a line.
TABLE_A2: Mapping[str, Any] = {
    "length": 256,
    "rates": (5e-5, 1e-4, 3e-4),
    "epochs": (2, 3, 5, 10, 20),
    "batch_sizes": {12: (16, 32, 64, 128), 24: (8, 16, 32, 64)},
    "weight_decays": (0.0, 0.01),
    "warm_ups": (0.06, 0.1, 0.3),
}


def table_a2(layers: int) -> list[dict[str, Any]]:
    """Returns all settings of Table A.2 as those of a recipe.

    Args:
        layers: Of the encoder, which say the sizes of batches: of Base, but for Large.
    """
    sizes = TABLE_A2["batch_sizes"]
    values = {
        "rate": TABLE_A2["rates"],
        "epochs": TABLE_A2["epochs"],
        "batch_size": sizes.get(layers, sizes[12]),
        "weight_decay": TABLE_A2["weight_decays"],
        "warm_up": TABLE_A2["warm_ups"],
    }
    combined = itertools.product(*values.values())
    shared = {"length": TABLE_A2["length"]}
    return [{**dict(zip(values, each, strict=True)), **shared} for each in combined]


# The comparison; the choice of rates; figures by rate and weight; the search of A.3.
STAGES = ("main", "rates", "sweep", "road-map")


@dataclasses.dataclass(frozen=True)
class ElectraConfig(EncoderConfig):
    """A grid of runs: every arm, generator, rate, weight and seed."""

    arms: tuple[str, ...] = setting(("masked",), f"Some of {', '.join(ARMS)}.")
    generators: tuple[int, ...] = setting(
        (4,), "Layers of the generator; of arm `masked`, of the only encoder."
    )
    rates: tuple[float, ...] = setting(
        (), "Of the detector, or of both; none: the arm's best."
    )
    weights: tuple[float, ...] = setting((50.0,), "Of the detector's loss.")
    generator_rate: float = setting(
        GENERATOR_RATE, "Of a generator with an optimiser of its own."
    )
    standalone: tuple[str, ...] = setting(
        ("4:1",),
        "LAYERS:SEED of masked language models, trained before, whose text detectors "
        "are scored on.",
    )
    standalone_steps: int = setting(3000, "Steps that these were trained.")
    stage: str = setting("main", f"Which tables the runs are in: {', '.join(STAGES)}.")
    tasks: tuple[str, ...] = setting(
        (), f"Fine-tune finished encoders in place of that: {', '.join(TASKS)}."
    )
    encoders_dir: str = setting("runs/electra", "The --output_dir of these encoders.")
    task_rate: float = setting(1e-3, "The highest of fine-tuning, of AdaMax.")
    task_steps: int = setting(600, "Of 20 epochs at most, and 3 at least.")
    table_a2: int = setting(
        0,
        "Fine-tune with so many of Table A.2's settings (360 are all), drawn by the "
        "seed, and test the best on held-out examples; 0: with those above.",
    )
    project_steps: int = setting(
        0, "Time so many steps instead, and project the hours of all."
    )

    may_be_zero: ClassVar[tuple[str, ...]] = (*EncoderConfig.may_be_zero, "table_a2")

    def check(self) -> None:
        """Raises ValueError for settings that no run can have."""
        super().check()
        for arm in self.arms:
            if arm not in ARMS:
                raise ValueError(
                    f"--arms must be some of {', '.join(ARMS)}; found {arm}."
                )
        if self.stage not in STAGES:
            raise ValueError(
                f"--stage must be one of {', '.join(STAGES)}; found {self.stage}."
            )
        for name in ("arms", "generators", "weights"):
            if not getattr(self, name):
                raise ValueError(f"--{name} must name at least one.")
        for name in ("generators", "rates", "weights"):
            if any(not value > 0 for value in getattr(self, name)):
                raise ValueError(f"--{name} must be positive numbers.")
        for task in self.tasks:
            if task not in TASKS:
                raise ValueError(
                    f"--tasks must be some of {', '.join(TASKS)}; found {task}."
                )
        most = len(table_a2(self.layers))
        if not 0 <= self.table_a2 <= most:
            raise ValueError(
                f"--table_a2 must be from 0 to {most}, found {self.table_a2}."
            )
        if self.table_a2 and not self.tasks:
            raise ValueError("--table_a2 needs --tasks.")
        for name in ("task_rate", "task_steps"):
            if not getattr(self, name) > 0:
                raise ValueError(f"--{name} must be positive.")
        for name in self.standalone:
            layers, _, seed = name.partition(":")
            if not (layers.isdigit() and seed.isdigit()):
                raise ValueError(
                    f"--standalone must be LAYERS:SEED, such as 4:1; found {name}."
                )


_ALL = ("4:1", "4:2", "2:1", "1:1")
_SMALL = ElectraConfig(standalone=_ALL)
# Table A.1, Base; widths are those of BERT.
_BASE = ElectraConfig(
    arms=("decoupled",),
    generators=(12,),
    layers=12,
    width=768,
    heads=12,
    pieces=128_000,
    positions="both",
    slope=0.0,
    norm="post",
    residual_scaling="admin",
    initializer_range=0.02,
    dropout=0.1,
    length=512,
    batch_size=2048,
    steps=125_000,
    looks=125,
    warm_up=0.08,
    rates=(1.5e-3,),
    generator_rate=2e-4,
    clip_norm=2.0,
    standalone=(),
    project_steps=2,
)
PRESETS = {
    # Seconds: does everything run?
    "smoke": ElectraConfig(
        arms=("masked", "original", "decoupled"),
        generators=(1,),
        corpus="python-docs",
        fraction=0.05,
        pieces=300,
        length=16,
        batch_size=8,
        layers=1,
        width=8,
        heads=2,
        steps=8,
        looks=2,
        standalone=("1:1",),
        standalone_steps=8,
    ),
    "generators": dataclasses.replace(_SMALL, generators=(4, 2, 1), standalone=()),
    "rates": dataclasses.replace(
        _SMALL,
        arms=("original", "decoupled"),
        rates=(5e-4, 1e-3, 2e-3, 4e-3),
        steps=800,
        looks=4,
        stage="rates",
        standalone=("4:1",),
    ),
    "small": dataclasses.replace(
        _SMALL, arms=("original", "decoupled"), generators=(1, 4)
    ),
    # Behind `generators` and `small`.
    "tasks": dataclasses.replace(
        _SMALL,
        arms=("masked", "original", "decoupled"),
        generators=(1, 4),
        tasks=("sst2-tenth", "ag-news-1000"),
    ),
    # One seed, no claims: too few examples for encoders of this size. Behind `between`.
    "glue": dataclasses.replace(
        _SMALL,
        arms=("original", "decoupled"),
        generators=(2,),
        tasks=("cola", "rte", "mrpc"),
    ),
    # Table A.2 on the tasks of Table 1.1, whose files must all be there.
    "table-a2": dataclasses.replace(
        _SMALL,
        arms=("original", "decoupled"),
        generators=(4,),
        tasks=tuple(GLUE),
        table_a2=360,
    ),
    # One seed: generators between, and the steps from one method to the other.
    "between": dataclasses.replace(
        _SMALL,
        arms=("original", "decoupled"),
        generators=(2,),
        standalone=("4:1", "2:1", "1:1"),
    ),
    "steps": dataclasses.replace(_SMALL, arms=("separate", "disentangled")),
    # Figures 1.3, 1.4 and 1.6, one seed.
    "sweep": dataclasses.replace(
        _SMALL,
        arms=("original", "decoupled"),
        generators=(1, 4),
        rates=(5e-4, 2e-3, 8e-3),
        steps=1500,
        looks=10,
        stage="sweep",
        standalone=("4:1",),
    ),
    # Figure 1.6 by the weight of the detector's loss.
    "weights": dataclasses.replace(
        _SMALL,
        arms=("original", "decoupled"),
        generators=(4,),
        weights=(100.0, 200.0),
        rates=(2e-3,),
        steps=1500,
        looks=10,
        stage="sweep",
        standalone=("4:1",),
    ),
    "base": _BASE,
    "large": dataclasses.replace(
        _BASE,
        generators=(8,),
        layers=24,
        width=1024,
        heads=16,
        buckets=128,
        distance=256,
    ),
}
GRID = Grid("electra", PRESETS, "pretraining:runs_of", reads_data=True)
